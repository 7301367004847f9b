"""Says what is installed, which device would be used and why, what does not fit, and the repair."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchtpu import device, hardware, packages
from torchtpu.simulator import pjrt
from torchtpu.simulator import plugin as plugins

Status = Literal["ok", "warn", "fail"]

OLDEST_PYTHON = (3, 11)
# What torch_tpu 0.2.0 declares, for when the interpreter has no torch_tpu to ask.
TORCH_RANGE = ((2, 11), (2, 15))
OLDEST_LIBTPU = (0, 0, 50)
# PJRT API of the torch_tpu 0.2.0 build. The pinned plugin has 0.115.
BACKEND_PJRT = (0, 116)
PROBE_SECONDS = 120.0


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
        name: Short name, such as ``torch``.
        status: ``ok``, ``warn`` (works, but worth knowing) or ``fail``.
        detail: What was found.
        repair: What to do about it, a command where there is one; empty when there is nothing.
    """

    name: str
    status: Status
    detail: str
    repair: str = ""


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _pip(have: packages.Installed, *requirements: str) -> str:
    quoted = " ".join(f"'{r}'" if re.search(r"[<>=]", r) else r for r in requirements)
    return f"{have.python} -m pip install {quoted}"


def _python(have: packages.Installed) -> Check:
    detail = f"{have.python_version} at {have.python}"
    if _numbers(have.python_version)[:2] < OLDEST_PYTHON:
        return Check("python", "fail", f"{detail}; torch_tpu needs 3.11 or later", "use Python 3.11")
    return Check("python", "ok", detail)


def _platform(have: packages.Installed) -> Check:
    del have
    system, machine = platform.system(), platform.machine()
    if (system, machine) == ("Linux", "x86_64"):
        return Check("platform", "ok", f"{system} {machine}")
    repair = "scan and patch work anywhere; run on Linux x86-64"
    return Check("platform", "fail", f"{system} {machine}: torch_tpu has no wheel for it", repair)


def _torch_range(have: packages.Installed) -> tuple[tuple[int, ...], tuple[int, ...]]:
    for requirement in have.torch_tpu_requires:
        if re.match(r"torch\b(?![\w-])", requirement):
            low = re.search(r">=\s*([\d.]+)", requirement)
            high = re.search(r"<=\s*([\d.]+)", requirement)
            if low and high:
                return _numbers(low.group(1)), _numbers(high.group(1))
    return TORCH_RANGE


def _torch(have: packages.Installed) -> Check:
    low, high = _torch_range(have)
    wanted = f"torch>={'.'.join(map(str, low))},<={'.'.join(map(str, high))}"
    install = _pip(have, wanted)
    version = have.versions.get("torch")
    if version is None:
        return Check("torch", "fail", "not installed", install)
    release = _numbers(version)
    if release < low or release[: len(high)] > high:
        return Check("torch", "fail", f"{version}; torch_tpu needs {wanted}", install)
    if "+cu" in version or "+rocm" in version:
        detail = f"{version}: a GPU build; torch_tpu is made for the CPU build"
        return Check("torch", "warn", detail, f"install the CPU build of {wanted}")
    return Check("torch", "ok", version)


def _torch_tpu(have: packages.Installed) -> Check:
    version = have.versions.get("torch_tpu")
    if version is None:
        return Check("torch_tpu", "fail", "not installed", _pip(have, "torch_tpu"))
    if _numbers(version)[:2] != (0, 2):
        detail = f"{version}; this tool was tested with 0.2"
        return Check("torch_tpu", "warn", detail, _pip(have, "torch_tpu>=0.2,<0.3"))
    return Check("torch_tpu", "ok", version)


def _libtpu(have: packages.Installed) -> Check:
    version = have.versions.get("libtpu")
    wanted = ".".join(map(str, OLDEST_LIBTPU))
    install = _pip(have, f"libtpu>={wanted}")
    needed = hardware.find_chips().usable > 0
    if version is None:
        detail = "not installed; needed on TPU hardware and to compile for a TPU"
        return Check("libtpu", "fail" if needed else "warn", detail, install)
    if _numbers(version) < OLDEST_LIBTPU:
        detail = f"{version}; torch_tpu needs {wanted} or later"
        return Check("libtpu", "fail" if needed else "warn", detail, install)
    return Check("libtpu", "ok", version)


def _jax(have: packages.Installed) -> Check:
    jax, jaxlib = have.versions.get("jax"), have.versions.get("jaxlib")
    if jax is None or jaxlib is None:
        missing = " and ".join(n for n in ("jax", "jaxlib") if n not in have.versions)
        detail = f"no {missing}; needed only to compile for a TPU and for Pallas kernels"
        return Check("jax", "warn", detail, _pip(have, "jax"))
    if _numbers(jax)[:2] != _numbers(jaxlib)[:2]:
        detail = f"jax {jax} with jaxlib {jaxlib}"
        return Check("jax", "fail", f"{detail}: they must be of one release", _pip(have, "jax"))
    return Check("jax", "ok", f"jax {jax}, jaxlib {jaxlib}")


def _plugin(have: packages.Installed) -> Check:
    ours = packages.installed()
    folders = [i.folders[plugins.PACKAGE] for i in (have, ours) if plugins.PACKAGE in i.folders]
    needed: Status = "warn" if hardware.find_chips().usable else "fail"
    try:
        found = plugins.find_plugin(folders)
    except plugins.PluginError as error:
        return Check("plugin", needed, str(error), _pip(ours, f"{plugins.DISTRIBUTION}==0.11.2"))
    what = found.release or "not a pinned one, used because it was named"
    detail = f"{found.path} ({what}), SHA-256 {found.sha256}"
    return Check("plugin", "ok" if found.release else "warn", detail)


def _pjrt(have: packages.Installed) -> Check:
    del have
    try:
        info = device.choose("simulated")
        assert info.plugin is not None
        major, minor = pjrt.api_version(pjrt.load_table(Path(info.plugin)))
    except (device.DeviceError, OSError) as error:
        return Check("pjrt", "warn", f"the plugin's PJRT API cannot be read: {error}")
    backend = ".".join(map(str, BACKEND_PJRT))
    detail = f"plugin {major}.{minor}, torch_tpu built for {backend}"
    if major != BACKEND_PJRT[0] or minor > BACKEND_PJRT[1]:
        return Check("pjrt", "warn", f"{detail}: untested combination", "use the pinned plugin")
    return Check("pjrt", "ok", detail)


def _bubblewrap(have: packages.Installed) -> Check:
    del have
    path = shutil.which("bwrap")
    if path is None:
        detail = "not found: workloads would run unsandboxed"
        return Check("bubblewrap", "warn", detail, "apt-get install bubblewrap")
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("bubblewrap", "warn", f"{path} cannot be run: {error}")
    if tried.returncode:
        said = tried.stderr.strip().splitlines()[-1:] or ["no message"]
        detail = f"{path} cannot make a sandbox here: {said[0]}"
        return Check("bubblewrap", "warn", detail, "allow unprivileged user namespaces")
    return Check("bubblewrap", "ok", path)


def _flags(have: packages.Installed) -> Check:
    del have
    flags = os.environ.get("XLA_FLAGS", "").split()
    foreign = [flag for flag in flags if flag.startswith(("--xla_tpu", "--xla_gpu_cuda"))]
    if foreign:
        detail = f"XLA_FLAGS holds {' '.join(foreign)}, which can end a process on another device"
        return Check("xla flags", "warn", detail, "TPU compiler flags belong in LIBTPU_INIT_ARGS")
    return Check("xla flags", "ok", " ".join(flags) or "none set")


def _metadata(have: packages.Installed) -> Check:
    if "torch_tpu" not in have.versions or hardware.find_chips().usable or hardware.on_google_cloud():
        return Check("metadata server", "ok", "not asked in vain")
    if os.environ.get("TPU_SKIP_MDS_QUERY", "0").lower() not in ("", "0", "false"):
        return Check("metadata server", "ok", "TPU_SKIP_MDS_QUERY is set: it is not asked")
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        return Check("metadata server", "ok", "TORCH_DEVICE_BACKEND_AUTOLOAD is off: torch does not load torch_tpu")
    detail = (
        "`import torch` loads torch_tpu; without a TPU and outside Google Cloud the first backward(), on the CPU too,"
        " then waits minutes for a metadata server"
    )
    repair = (
        "export TPU_SKIP_MDS_QUERY=1 for your own programs, or TORCH_DEVICE_BACKEND_AUTOLOAD=0 for those that need"
        " no TPU; the commands of torchtpu-agent set it for theirs"
    )
    return Check("metadata server", "warn", detail, repair)


def _device(have: packages.Installed) -> tuple[Check, device.DeviceInfo | None]:
    try:
        info = device.choose(python=have.python)
    except device.DeviceError as error:
        return Check("device", "fail", error.message, error.remedy), None
    return Check("device", "ok", f"{info.kind}: {info.name}; {info.why}"), info


def _probe(have: packages.Installed, info: device.DeviceInfo, seconds: float) -> Check:
    root = Path(__file__).resolve().parents[1]
    repair = "run again with the environment variable TORCHTPU_VERBOSE=1 to see the backend's log"
    with tempfile.TemporaryDirectory(prefix="torchtpu-probe-") as folder:
        variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        variables |= device.environment(info) | {"TORCHTPU_PROBE_ROOT": str(root)}
        command = [str(have.python), str(root / "torchtpu" / "probe.py")]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=variables,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return Check("probe", "fail", f"no answer within {seconds:g} s", repair)
        except OSError as error:
            return Check("probe", "fail", f"{have.python} cannot be started: {error}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = " | ".join(done.stderr.strip().splitlines()[-3:])[-500:]
        return Check("probe", "fail", f"ended with code {done.returncode}: {said}", repair)
    answer = json.loads(lines[-1])
    detail = f"1.5 + 2.5 = {answer['sum'][0]} on {answer['device']}, {answer['seconds']} s"
    return Check("probe", "ok" if answer["sum"] == [4.0, 4.0] else "fail", detail)


_LOOKS: tuple[Callable[[packages.Installed], Check], ...] = (
    _python,
    _platform,
    _torch,
    _torch_tpu,
    _libtpu,
    _jax,
    _plugin,
    _pjrt,
    _bubblewrap,
    _flags,
    _metadata,
)


def checks(python: Path | None = None, *, probe_seconds: float = PROBE_SECONDS) -> Iterator[Check]:
    """Yields one check after another; the last, a real addition on the device, takes seconds.

    Args:
        python: The interpreter workloads run in; None is the running one.
        probe_seconds: Time the addition may take.
    """
    try:
        have = packages.installed(python)
    except (OSError, subprocess.SubprocessError, ValueError, AssertionError) as error:
        detail = f"{python} does not answer: {error}"
        yield Check("python", "fail", detail, "name a working Python with --python")
        return
    for look in _LOOKS:
        yield look(have)
    check, info = _device(have)
    yield check
    if info is None:
        yield Check("probe", "fail", "not run: there is no device", check.repair)
        return
    yield _probe(have, info, probe_seconds)


def examine(python: Path | None = None, *, probe_seconds: float = PROBE_SECONDS) -> list[Check]:
    """Examines an interpreter and this machine.

    Args:
        python: The interpreter workloads run in; None is the running one.
        probe_seconds: Time the addition on the device may take.

    Returns:
        Every check. Nothing raises: what is missing is a check that says so.
    """
    return list(checks(python, probe_seconds=probe_seconds))
