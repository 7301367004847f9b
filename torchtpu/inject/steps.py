"""Counts optimizer steps, reads each step's loss, and ends the program cleanly after the steps asked for."""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torchtpu.inject import writer

LIMIT_VARIABLE = "TORCHTPU_MAX_STEPS"
LOSSES_VARIABLE = "TORCHTPU_LOSSES"
EVERY_STEP = 100
INTERVAL = 0.2
_OPS_MODULE = "torch_tpu._internal.device._device_ops_backend"
_last_ops: int | None = None
_finished = False
_inherited = False
_parents: list[Any] = []


class StepsReached(SystemExit):
    """Ends the program with exit code 0 once it has made the steps asked for."""


def device_ops() -> int | None:
    """Returns how many programs TorchTPU has been asked to run in this process; None without it."""
    global _last_ops
    count = getattr(sys.modules.get(_OPS_MODULE), "_get_cache_requests", None)
    # TorchTPU aborts the process when it is asked after its own shutdown.
    if count is not None and not _finished and not _inherited:
        _last_ops = int(count())
    return _last_ops


class StepRecorder:
    """Follows every optimizer of a process.

    A step of the program is one step of its busiest optimizer, so that a GAN's two optimizers
    make one step per iteration.
    """

    def __init__(self, limit: int | None, read_losses: bool) -> None:
        self.limit = limit
        self.read_losses = read_losses
        self.counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.steps = self.device_steps = 0
        self.root: Any = None
        self.unread: deque[tuple[int, Any]] = deque(maxlen=EVERY_STEP)
        self.on_device = False
        self.told = 0
        self.written = 0.0

    def saw_backward(self, tensors: Any) -> None:
        """Remembers the loss: the last scalar that gradients were asked of."""
        root = tensors if hasattr(tensors, "numel") else (list(tensors) or [None])[-1]
        if root is not None and root.numel() == 1:
            self.root = getattr(root, "_torchtpu_unscaled", root).detach()

    def before_step(self, optimizer: Any) -> None:
        """Ends the program when another step would be one too many."""
        if self.limit is not None and self.counts.get(optimizer, 0) >= self.limit:
            self.stop()

    def after_step(self, optimizer: Any) -> None:
        """Counts the step, writes its event, and ends the program when all optimizers have theirs."""
        count = self.counts[optimizer] = self.counts.get(optimizer, 0) + 1
        if count > self.steps:
            self.steps = count
            self.on_device = _on_device(optimizer)
            self.device_steps += self.on_device
            self._keep_loss()
            if self.steps <= EVERY_STEP or time.monotonic() - self.written >= INTERVAL:
                self.flush()
        if self.limit is not None and self._all_done(self.limit):
            self.stop()

    def restart(self) -> None:
        """Begins anew in a forked child, which counts its own steps."""
        # Tensors on the device must not be freed by a process that has no runtime.
        _parents.append((self.unread, self.root))
        self.__init__(self.limit, self.read_losses)  # type: ignore[misc]

    def _keep_loss(self) -> None:
        if self.root is not None and self.read_losses:
            self.unread.append((self.steps, self.root))
        self.root = None

    def _losses(self) -> list[tuple[int, float]]:
        losses: list[tuple[int, float]] = []
        if _finished:
            return losses
        try:
            while self.unread:
                step, loss = self.unread.popleft()
                losses.append((step, float(loss)))
        except Exception as error:  # noqa: BLE001  an asynchronous device error is the program's to raise, not ours
            self.read_losses = False
            writer.write("note", kind="losses", message=f"losses are no longer read: {error!r}"[:500])
        return losses

    def _all_done(self, limit: int) -> bool:
        if any(count < limit for count in self.counts.values()):
            return False
        # With one step asked for, an optimizer whose first step is still to come has not been seen.
        return limit > 1 or not any(self._waits(thing) for thing in gc.get_objects())

    def _waits(self, thing: Any) -> bool:
        optimizer = sys.modules["torch.optim"].Optimizer
        if not issubclass(type(thing), optimizer) or thing in self.counts:
            return False
        return hasattr(thing, "param_groups") and any(p.grad is None for p in _parameters(thing))

    def flush(self, read: bool = True) -> None:
        """Writes the steps since the last event; reading their losses waits for the device."""
        self.written, self.told = time.monotonic(), self.steps
        losses = self._losses() if read else []
        writer.write(
            "step",
            step=self.steps,
            device_steps=self.device_steps,
            on_device=self.on_device,
            losses=losses,
            loss=losses[-1][1] if losses else None,
            device_ops=device_ops(),
        )

    def stop(self) -> None:
        """Ends the program, cleanly."""
        self.flush()
        writer.write("stop", step=self.steps)
        raise StepsReached(0)


def _parameters(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _on_device(optimizer: Any) -> bool:
    trained = [p for p in _parameters(optimizer) if getattr(p, "grad", None) is not None]
    return bool(trained or _parameters(optimizer)) and all(
        p.device.type == "tpu" for p in trained or _parameters(optimizer)
    )


def _hook_backward(torch: Any, recorder: StepRecorder) -> None:
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def recording(tensors: Any, *rest: Any, **named: Any) -> Any:
        recorder.saw_backward(tensors)
        return backward(tensors, *rest, **named)

    torch.autograd.backward = recording


def _hook_scaler(module: Any) -> None:
    scale = module.GradScaler.scale

    @functools.wraps(scale)
    def recording(self: Any, outputs: Any) -> Any:
        scaled = scale(self, outputs)
        if hasattr(outputs, "numel") and scaled is not outputs:
            scaled._torchtpu_unscaled = outputs.detach()
        return scaled

    module.GradScaler.scale = recording


def _finish(recorder: StepRecorder) -> None:
    global _finished
    if recorder.unread:
        recorder.flush()
    _tell(recorder)
    _finished = True


def _tell(recorder: StepRecorder) -> None:
    if recorder.steps > recorder.told:
        recorder.flush(read=False)
    if not _finished:
        writer.write("ops", device_ops=device_ops())


def _start_again(recorder: StepRecorder) -> None:
    """Leaves to the parent what is the parent's: its losses, and its work on the device."""
    global _inherited, _last_ops
    recorder.restart()
    # A runtime that was started does not live on in a child, and may not even be asked.
    _inherited = _inherited or bool(_last_ops)
    _last_ops = None


def _telling(function: Callable[..., Any], recorder: StepRecorder) -> Callable[..., Any]:
    @functools.wraps(function)
    def telling(*arguments: Any, **named: Any) -> Any:
        _tell(recorder)
        return function(*arguments, **named)

    return telling


def _hook_leaving(module: Any, recorder: StepRecorder) -> None:
    # Ways out that pass by everything registered for the end.
    for name in ("_exit", "execv", "execve"):
        setattr(module, name, _telling(getattr(module, name), recorder))


def install(torch: ModuleType) -> None:
    """Starts recording in this process; called once torch has been imported."""
    from torch.optim import optimizer as optimizers

    limit = os.environ.get(LIMIT_VARIABLE)
    recorder = StepRecorder(int(limit) if limit else None, os.environ.get(LOSSES_VARIABLE) != "0")
    optimizers.register_optimizer_step_pre_hook(lambda optimizer, *_: recorder.before_step(optimizer))
    optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: recorder.after_step(optimizer))
    _hook_backward(torch, recorder)
    _hook_scaler(sys.modules["torch.amp.grad_scaler"])
    os.register_at_fork(before=device_ops, after_in_child=functools.partial(_start_again, recorder))
    _hook_leaving(os, recorder)
    # Runs before every atexit function, while the device is still there.
    threading._register_atexit(_finish, recorder)  # type: ignore[attr-defined]
