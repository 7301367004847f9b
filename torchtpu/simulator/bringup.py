"""Starts torch_tpu on a CPU PJRT plugin in this process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchtpu.device_info import DEFAULT_GENERATION, GENERATION_VARIABLE, DeviceInfo, Numerics
from torchtpu.lowering import capture
from torchtpu.simulator import flags, pjrt

# Libraries of kernels vanish from the dispatcher when they are collected.
_kept: list[Any] = []

# Names torch_tpu gives the generations (keys of its memory and FLOP/s tables).
_BACKEND_NAMES = {
    "v4": "TPU v4",
    "v5p": "TPU v5p",
    "v5e": "TPU v5e",
    "v6e": "TPU v6e",
    "tpu7x": "TPU v7",
}


@contextlib.contextmanager
def _muted(active: bool) -> Iterator[None]:
    if not active:
        yield
        return
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.filterwarnings("ignore", message="<TorchTpu/Performance/TcMalloc/>")
        yield


def _library_held(maps: Path) -> Path | None:
    """Returns the libtpu this process has loaded already, if any."""
    if "torch_tpu" not in sys.modules:
        return None
    for line in maps.read_text().splitlines():
        name = line.rpartition(" ")[2]
        if name.endswith("/libtpu.so"):
            return Path(name)
    return None


@contextlib.contextmanager
def _native_muted(active: bool) -> Iterator[None]:
    if not active:
        yield
        return
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def _read_flags(verbose: bool) -> None:
    """Makes torch_tpu read XLA_FLAGS here, where its one warning about them can be held back.

    Left alone it warns at the first compilation, on a thread of its own.
    """
    from torch_tpu._internal.device import _device_ops_backend

    with _native_muted(not verbose):
        _device_ops_backend._get_allow_excess_precision()


def _count_one_device(generation: str) -> None:
    from torch_tpu._internal.device import _device_module
    from torch_tpu._internal.utils import hardware

    # Before the runtime starts torch_tpu counts PCI devices, of which there are none.
    _device_module.TpuDeviceModule._device_count = 1
    name = _BACKEND_NAMES.get(generation, _BACKEND_NAMES["v5e"])
    hardware.get_tpu_device_name = lambda: name
    hardware.get_tpu_device_count = lambda: 1


def start(info: DeviceInfo, *, numerics: Numerics, verbose: bool) -> None:
    """Loads the plugin, registers the ``tpu`` device and installs the substitutes.

    Args:
        info: The simulated device; its plugin is loaded.
        numerics: Matrix numerics.
        verbose: Lets torch_tpu's start-up lines through.
    """
    assert info.plugin is not None
    flags.set_flags(os.environ)
    table = pjrt.load_table(Path(info.plugin))
    pjrt.patch_client_create(table)
    held = _library_held(Path("/proc/self/maps"))
    if held is not None:
        pjrt.overlay(pjrt.load_table(held), table)
    with _muted(not verbose):
        import torch  # noqa: F401  before torch_tpu, whose library needs it loaded
        import torch_tpu._loader as loader

        loader._init_device("tpu")
        loader._LOADED = True
    _read_flags(verbose)
    _count_one_device(os.environ.get(GENERATION_VARIABLE, DEFAULT_GENERATION))
    if capture.asked():
        # A step that is only recorded and lowered never runs here, and keeps the operators a TPU gets.
        return
    from torchtpu.simulator import collectives, compiled_collectives, pallas, runtime, substitutes

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        _kept.append(substitutes.install(numerics))
    collectives.register()
    compiled_collectives.install()
    pallas.install()
    runtime.start_with_first_use()
    if runtime.in_launched_rank(os.environ):
        runtime.start_runtime()
