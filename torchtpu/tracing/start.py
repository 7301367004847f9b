"""Follows every operator of a process through a dispatch mode that torch.compile looks through."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchtpu.proof import places
from torchtpu.trace import FOLDER_VARIABLE
from torchtpu.tracing.observer import Observer, compilations

_observer: Observer | None = None
_base: Any = TorchDispatchMode


class _Mode(_base):  # type: ignore[misc]
    """Hands each operator to the observer."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer

    @classmethod
    def is_infra_mode(cls) -> bool:
        """What makes torch.compile go on compiling below it."""
        return True

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        misses, began = compilations(), time.perf_counter()
        made = func(*args, **named)
        self.observer.ran(func, args, named, made, began, compilations() - misses)
        return made


def _hook(owner: Any, name: str, before: Callable[[], None]) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        before()
        return original(*args, **kwargs)

    setattr(owner, name, hooked)


def hook() -> None:
    """Follows steps and backward passes where the environment asks for it; before what ends a program at a step."""
    global _observer
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder or _observer is not None:
        return
    from torch.optim import optimizer as optimizers

    observer = _observer = Observer(Path(folder))
    counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def backward() -> None:
        observer.backward_at = places.users_line() or observer.backward_at

    def steps(*_: Any) -> None:
        observer.phase = "optimizer"

    def stepped(optimizer: Any, *_: Any) -> None:
        observer.phase = "program"
        counts[optimizer] = counts.get(optimizer, 0) + 1
        # As for the program's own count: a step of the busiest optimizer.
        if counts[optimizer] >= observer.step:
            observer.next_step()

    _hook(torch.autograd, "backward", backward)
    _hook(torch.autograd, "grad", backward)
    optimizers.register_optimizer_step_pre_hook(steps)
    optimizers.register_optimizer_step_post_hook(stepped)


def begin() -> None:
    """Follows the operators from here on; the device, where there is one, is up."""
    observer = _observer
    if observer is None:
        return
    observer.logs.install()
    observer.starts()
    accelerator = getattr(torch, "accelerator", None)
    _hook(accelerator, "synchronize", lambda: observer.waited("synchronize", places.users_line(), observer.phase))
    threading._register_atexit(observer.save)  # type: ignore[attr-defined]
    _Mode(observer).__enter__()
