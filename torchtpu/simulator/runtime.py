"""Starts torch_tpu's runtime as the only process of its world, whatever a launcher set."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# What a launcher such as torchrun sets. torch_tpu reads them when the runtime starts and then
# wants a TPU launch environment and as many devices; a CPU plugin has one device per process.
_WORLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")

# What torch.tpu calls inside and what needs the runtime. torch.tpu's own functions cannot be
# wrapped: they look at their caller, and place their warnings by it.
_STARTING = (
    "_get_current_device_id",
    "_get_current_stream_id",
    "_get_device_count",
    "_get_local_device_attributes",
    "_init_runtime_options",
    "_set_current_stream_id",
    "get_default_generator",
    "get_eager_default_generator",
    "get_rng_state",
    "manual_seed",
    "manual_seed_all",
    "set_rng_state",
)

_started = False


def in_launched_rank(environ: Mapping[str, str]) -> bool:
    """Tells whether a launcher started this process as one rank of several."""
    return any(name in environ for name in _WORLD)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    saved = {name: os.environ.pop(name) for name in _WORLD if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(saved)


def start_runtime() -> None:
    """Starts the runtime with the launcher's variables hidden; later calls do nothing."""
    global _started
    if _started:
        return
    _started = True
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    # A copy starts the runtime and compiles nothing. A program's own modes, such as one that
    # counts operators, must not see it.
    with _alone(), _disable_current_modes():
        torch.zeros(1, device="cpu").to("tpu").cpu()


def _starting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def started(*args: Any, **kwargs: Any) -> Any:
        start_runtime()
        return function(*args, **kwargs)

    return started


def start_with_first_use() -> None:
    """Has the runtime start when a program first touches the device or its random numbers.

    A program may set WORLD_SIZE at any time before, and without a process group; torch_tpu would
    then refuse to work or end the process (compilation.cc:533).
    """
    import torch
    from torch_tpu._internal.device import _device_ops_backend

    device: Any = torch.tpu  # type: ignore[attr-defined]
    # torch calls this one for the first tensor.
    device._lazy_init = _starting(device._lazy_init)
    for name in _STARTING:
        if hasattr(_device_ops_backend, name):
            setattr(_device_ops_backend, name, _starting(getattr(_device_ops_backend, name)))
