"""Starts torch_tpu's runtime as the only process of its world, whatever a launcher set."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

# What a launcher such as torchrun sets. torch_tpu reads them when the backend starts and then
# wants a TPU launch environment and as many devices; a CPU plugin has one device per process.
_WORLD = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")

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
    """Runs a first operation with the launcher's variables hidden; later calls do nothing."""
    global _started
    if _started:
        return
    import torch

    with _alone():
        (torch.ones(1, device="tpu") + 1).cpu()
    _started = True
