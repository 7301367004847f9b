"""Makes a program's process record one optimizer step, as its environment asks; used by the injected start-up code."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER_VARIABLE = "TORCHTPU_CAPTURE"
STEP_VARIABLE = "TORCHTPU_CAPTURE_STEP"
STEP_FILE = "step.json"
FORWARD_FILE = "forward.json"
# The first makes the optimizer's state, the second is like all that follow.
DEFAULT_STEP = 2
# The first call may fill caches that the second finds.
_CALLS = 2

_recorder: Any = None


def asked() -> bool:
    """Says whether this process is one whose step is to be recorded."""
    return bool(os.environ.get(FOLDER_VARIABLE))


def variables(folder: Path, step: int) -> dict[str, str]:
    """Returns the environment that makes a program record its step of that number, from 1."""
    return {
        FOLDER_VARIABLE: str(folder),
        STEP_VARIABLE: str(step),
        # The whole step becomes one program in any case, and tracing would hide its operators.
        "TORCHDYNAMO_DISABLE": "1",
    }


def hook_steps(torch: Any) -> None:
    """Follows the optimizers; must come before what ends the program after its last step."""
    if not asked():
        return
    from torch.optim import optimizer as optimizers

    from torchtpu.lowering import regions

    regions.follow(torch)
    window = _Window(Path(os.environ[FOLDER_VARIABLE]), int(os.environ.get(STEP_VARIABLE, DEFAULT_STEP)))
    optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: window.after_step(torch, optimizer))
    modules = torch.nn.modules.module
    modules.register_module_forward_pre_hook(lambda *_: window.before_call(torch))
    modules.register_module_forward_hook(lambda *_: window.after_call(torch), always_call=True)
    _one_process(torch)


def begin(torch: Any) -> None:
    """Takes the data from every tensor on the device from here on; the device is up."""
    global _recorder
    if not asked():
        return
    from torchtpu.lowering.recorder import StepRecorder
    from torchtpu.simulator import runtime

    runtime.start_runtime()
    # On a thread of its own the backward pass could not tell which line asked for it.
    torch.autograd.set_multithreading_enabled(False)
    _let_swap(torch)
    _take_lists(torch)
    _recorder = StepRecorder()
    _recorder.device.__enter__()
    if int(os.environ.get(STEP_VARIABLE, DEFAULT_STEP)) == 1:
        _recorder.start()


@contextlib.contextmanager
def recording(torch: Any) -> Iterator[None]:
    """Records what runs inside as the step, in a process that ``begin`` has prepared; gradients are results."""
    _recorder.start()
    yield
    _write(torch, Path(os.environ[FOLDER_VARIABLE]) / STEP_FILE, keep_gradients=True)


def _write(torch: Any, path: Path, keep_gradients: bool = False) -> None:
    step = _recorder.stop(dict(_names(torch)), keep_gradients=keep_gradients)
    step["deferred"] = torch.tpu.eager_mode == torch.tpu.EagerMode.DEFER_AND_FUSE
    path.write_text(json.dumps(step))


class _Window:
    """From the end of one step of the busiest optimizer to the end of the next.

    A program without an optimizer infers: there it is the second call of a module from outside any, without
    gradients. Where an optimizer steps later, its step is what counts.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.step = folder, step
        self.counts: dict[int, int] = {}
        self.done = self.depth = self.calls = 0
        self.in_call = False

    def after_step(self, torch: Any, optimizer: Any) -> None:
        """Begins or ends the recording of an optimizer step."""
        count = self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1
        if _recorder is None or count <= self.done:
            return
        self.done = count
        if count == self.step - 1:
            _recorder.start()
        elif count == self.step:
            _write(torch, self.folder / STEP_FILE)

    def before_call(self, torch: Any) -> None:
        """Begins to record a call from outside any module, as long as nothing was trained."""
        self.depth += 1
        if self.depth > 1 or self.done or self.step == 1 or self.calls >= _CALLS or _recorder is None:
            return
        if not torch.is_grad_enabled():
            self.in_call = True
            _recorder.start()

    def after_call(self, torch: Any) -> None:
        """Ends the recording of such a call."""
        self.depth -= 1
        if self.depth == 0 and self.in_call:
            self.in_call = False
            self.calls += 1
            _write(torch, self.folder / FORWARD_FILE)


def _let_swap(torch: Any) -> None:
    """Lets a module's parameters change their type in place, as they do on a TPU.

    For tensors without data torch swaps the two, and refuses where there is a weak reference to one. The
    fake mode itself keeps such references, which a swap does not harm.
    """
    swap = torch.utils.swap_tensors
    nobody = types.SimpleNamespace(getweakrefs=lambda _: [])

    @functools.wraps(swap)
    def swapped(first: Any, second: Any) -> None:
        known = torch.utils.weakref
        torch.utils.weakref = nobody
        try:
            swap(first, second)
        finally:
            torch.utils.weakref = known

    torch.utils.swap_tensors = swapped


def _take_lists(torch: Any) -> None:
    """Lets optimizers and clipping take lists of tensors at a time where they would with real ones."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.optim import optimizer

    for module in (torch.utils._foreach_utils, optimizer):
        module._foreach_supported_types.append(FakeTensor)


def _one_process(torch: Any) -> None:
    """Has data loaders work in this process: what they would send is small beside starting them."""
    loader = torch.utils.data.DataLoader
    original = loader.__init__

    def alone(self: Any, *arguments: Any, **named: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "pin_memory"):
            named.pop(name, None)
        original(self, *arguments, **named)

    loader.__init__ = alone


def _names(torch: Any) -> Iterator[tuple[int, str]]:
    """Names of parameters, buffers and optimizer state, by the tensor's id."""
    from torchtpu.lowering.recorder import GRADIENT

    # By type: some objects answer `isinstance` with work or a warning of their own.
    kinds = (torch.nn.Module, torch.optim.Optimizer)
    things = [thing for thing in gc.get_objects() if issubclass(type(thing), kinds)]
    modules = [thing for thing in things if isinstance(thing, torch.nn.Module)]
    inner = {id(child) for module in modules for child in module.children()}
    named: dict[int, str] = {}
    for module in modules:
        if id(module) not in inner:
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                named.setdefault(id(tensor), name)
                if getattr(tensor, "grad", None) is not None:
                    named.setdefault(id(tensor.grad), f"{GRADIENT}{name}")
    for optimizer in (thing for thing in things if isinstance(thing, torch.optim.Optimizer)):
        for parameter, state in optimizer.state.items():
            for key, tensor in state.items() if isinstance(state, Mapping) else ():
                named.setdefault(id(tensor), f"{key} of {named.get(id(parameter), 'a parameter')}")
    yield from named.items()
