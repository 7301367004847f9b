"""Starts torch_tpu on a CPU PJRT plugin in this process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtpu.simulator import flags, pjrt

if TYPE_CHECKING:
    from torchtpu.device import DeviceInfo, Numerics

# What a launcher such as torchrun sets. torch_tpu reads them when the backend starts and then
# expects the plugin to have as many devices; a CPU plugin has one per process.
_WORLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")

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


@contextlib.contextmanager
def _one_process_world() -> Iterator[None]:
    saved = {name: os.environ.pop(name) for name in _WORLD if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(saved)


def _count_one_device(generation: str) -> None:
    from torch_tpu._internal.device import _device_module
    from torch_tpu._internal.utils import hardware

    # Before the runtime starts torch_tpu counts PCI devices, of which there are none.
    _device_module.TpuDeviceModule._device_count = 1
    name = _BACKEND_NAMES.get(generation, _BACKEND_NAMES["v5e"])
    hardware.get_tpu_device_name = lambda: name
    hardware.get_tpu_device_count = lambda: 1


def _start_runtime() -> None:
    import torch

    with _one_process_world():
        (torch.ones(1, device="tpu") + 1).cpu()


def start(info: DeviceInfo, *, numerics: Numerics, verbose: bool) -> None:
    """Loads the plugin, registers the ``tpu`` device and installs the substitutes.

    Args:
        info: The simulated device; its plugin is loaded.
        numerics: Matrix numerics.
        verbose: Lets torch_tpu's start-up lines through.
    """
    assert info.plugin is not None
    flags.set_flags(os.environ)
    pjrt.patch_client_create(pjrt.load_table(Path(info.plugin)))
    with _muted(not verbose):
        import torch
        import torch_tpu._loader as loader

        loader._init_device("tpu")
        loader._LOADED = True
    from torchtpu.device import DEFAULT_GENERATION, GENERATION_VARIABLE

    _count_one_device(os.environ.get(GENERATION_VARIABLE, DEFAULT_GENERATION))
    from torchtpu.simulator import substitutes

    _kept.append(substitutes.install(numerics))
    if any(name in os.environ for name in _WORLD):
        _start_runtime()
