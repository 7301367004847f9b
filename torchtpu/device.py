"""Chooses the device a workload runs on and brings it up: TPU hardware, a simulated TPU or the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import MutableMapping
from pathlib import Path
from typing import Literal

from torchtpu import hardware, packages
from torchtpu.device_info import DEFAULT_GENERATION, GENERATION_VARIABLE, DeviceInfo, Kind, Numerics
from torchtpu.simulator import plugin as plugins

__all__ = [
    "DEFAULT_GENERATION",
    "GENERATION_VARIABLE",
    "INFO_VARIABLE",
    "NUMERICS_VARIABLE",
    "VERBOSE_VARIABLE",
    "DeviceError",
    "DeviceFault",
    "DeviceInfo",
    "Kind",
    "Numerics",
    "Preference",
    "bring_up",
    "choose",
    "environment",
]

Preference = Literal["auto", "hardware", "simulated", "cpu"]

INFO_VARIABLE = "TORCHTPU_DEVICE_INFO"
NUMERICS_VARIABLE = "TORCHTPU_NUMERICS"
VERBOSE_VARIABLE = "TORCHTPU_VERBOSE"

_lock = threading.Lock()
_brought_up: DeviceInfo | None = None
_fault: DeviceFault | None = None


class DeviceError(RuntimeError):
    """The device asked for cannot be used.

    Attributes:
        remedy: What the user can do about it.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


class DeviceFault(DeviceError):
    """The device came up half: what runs in this process now says nothing about it."""


def _packages(python: Path | None) -> packages.Installed:
    try:
        return packages.installed(python)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise DeviceError(
            f"the interpreter {python} cannot be asked for its packages ({error})",
            "name a working Python with --python",
        ) from error


def _require(have: packages.Installed, *names: str) -> None:
    missing = [name for name in names if name not in have.versions]
    if missing:
        raise DeviceError(
            f"{have.python} has no {' and no '.join(missing)}",
            f"install it: {have.python} -m pip install {' '.join(missing)}",
        )


def _plugin(have: packages.Installed, explicit: Path | None) -> plugins.Plugin:
    # A workload's interpreter need not carry the plugin: the one installed beside us serves it.
    ours = packages.installed()
    folders = [i.folders[plugins.PACKAGE] for i in (have, ours) if plugins.PACKAGE in i.folders]
    try:
        return plugins.find_plugin(folders, explicit)
    except plugins.PluginError as error:
        raise DeviceError("the simulated device has no plugin", str(error)) from error


def _hardware(have: packages.Installed, chips: hardware.Chips, why: str) -> DeviceInfo:
    _require(have, "torch", "torch_tpu", "libtpu")
    return DeviceInfo("hardware", f"TPU {chips.generation}", why, versions=have.versions)


def _simulated(have: packages.Installed, why: str, explicit: Path | None) -> DeviceInfo:
    _require(have, "torch", "torch_tpu")
    plugin = _plugin(have, explicit)
    release = plugin.release.rpartition(" ")[2] if plugin.release else "unpinned"
    generation = os.environ.get(GENERATION_VARIABLE, DEFAULT_GENERATION)
    return DeviceInfo(
        "simulated",
        f"simulated TPU {generation} (XLA CPU {release})",
        why,
        str(plugin.path),
        plugin.sha256,
        have.versions,
    )


def choose(prefer: Preference = "auto", *, python: Path | None = None, plugin: Path | None = None) -> DeviceInfo:
    """Chooses the device for a workload, without importing torch.

    Args:
        prefer: ``auto`` takes hardware when there is some and else the simulated device.
        python: Interpreter of the workload; None is the running one.
        plugin: CPU PJRT plugin to use for a simulated device, whatever its hash.

    Returns:
        The device, and why it was chosen.

    Raises:
        DeviceError: The device asked for cannot be used here; carries the remedy.
    """
    have = _packages(python)
    if prefer == "cpu":
        _require(have, "torch")
        return DeviceInfo("cpu", "CPU", "asked for", versions=have.versions)
    if prefer == "simulated":
        return _simulated(have, "asked for", plugin)
    chips = hardware.find_chips()
    if chips.usable:
        why = f"{chips.usable} TPU {chips.generation} chip(s) found"
        return _hardware(have, chips, why if prefer == "auto" else f"asked for; {why}")
    absent = (
        f"{chips.present} TPU chip(s) on the PCI bus, none exposed through VFIO" if chips.present else "no TPU found"
    )
    if prefer == "hardware":
        raise DeviceError(absent, "run on a TPU host, or use the simulated device")
    return _simulated(have, absent, plugin)


def environment(info: DeviceInfo, numerics: Numerics = "float32") -> dict[str, str]:
    """Returns the variables a child process needs before it imports torch.

    Args:
        info: The device, from ``choose``.
        numerics: ``tpu`` rounds float32 matrix inputs to bfloat16 as a TPU does by default;
            only a simulated device needs telling.
    """
    variables = {INFO_VARIABLE: info.to_json(), NUMERICS_VARIABLE: numerics}
    if info.kind == "simulated":
        assert info.plugin is not None
        variables |= {
            "TPU_LIBRARY_PATH": info.plugin,
            # There is no metadata server to ask which TPU VM this is.
            "TPU_SKIP_MDS_QUERY": "1",
        }
    if info.kind != "hardware":
        variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    return variables


def _quiet(environ: MutableMapping[str, str]) -> None:
    # 2 keeps errors: XLA's own last words before an abort are fatal lines and are never hidden.
    environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def bring_up(
    info: DeviceInfo | None = None,
    *,
    numerics: Numerics | None = None,
    verbose: bool | None = None,
) -> DeviceInfo:
    """Makes ``torch.device("tpu")`` work in this process; a second call changes nothing.

    May be called before or after ``import torch``, but before the first tensor on the device.

    Args:
        info: The device; None takes the one ``environment`` named, else ``choose("auto")``.
        numerics: Matrix numerics of a simulated device; None takes the environment's.
        verbose: Lets the backend's log lines through; None takes the environment's.

    Returns:
        The device that is up.

    Raises:
        DeviceError: It cannot be brought up; carries the remedy.
        DeviceFault: It came up half, now or in an earlier call.
    """
    global _brought_up
    with _lock:
        if _brought_up is not None:
            return _brought_up
        if _fault is not None:
            raise _fault
        if info is None:
            text = os.environ.get(INFO_VARIABLE)
            info = DeviceInfo.from_json(text) if text else choose()
        if numerics is None:
            numerics = "tpu" if os.environ.get(NUMERICS_VARIABLE) == "tpu" else "float32"
        if verbose is None:
            verbose = os.environ.get(VERBOSE_VARIABLE, "") not in ("", "0")
        _start(info, numerics, verbose)
        _brought_up = info
        return info


def _start(info: DeviceInfo, numerics: Numerics, verbose: bool) -> None:
    global _fault
    if info.kind == "cpu":
        return
    if not verbose:
        _quiet(os.environ)
    try:
        if info.kind == "simulated":
            from torchtpu.simulator import bringup

            os.environ.update(environment(info, numerics))
            bringup.start(info, numerics=numerics, verbose=verbose)
        else:
            _start_hardware()
    except Exception as error:  # whatever stopped it, the device must not be used as it is
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "torch_tpu"):
            raise DeviceError(
                f"{sys.executable} cannot import the backend ({error})",
                f"install it: {sys.executable} -m pip install torch torch_tpu",
            ) from error
        text = f"{info.name} did not come up whole ({type(error).__name__}: {error})"
        _fault = DeviceFault(text, "see: torchtpu-agent doctor")
        raise _fault from error


def _start_hardware() -> None:
    import torch  # noqa: F401  torch_tpu's entry point loads the backend
    import torch_tpu._loader as loader

    loader.load()
