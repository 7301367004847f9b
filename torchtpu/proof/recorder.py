"""Records what a program computes: module calls, gradients, losses, steps, parameters, buffers.

Module by module only during the first steps that were asked for; after them the module hooks are gone and
a step costs one pass over the gradients. What is recorded is a sketch (see `sketch`), made at once, so that
no tensor is kept alive for it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from torchtpu.inject import frames, imports, steps
from torchtpu.proof.naming import Names, is_wrapper
from torchtpu.proof.sketch import Sketcher, checksum, on_host, sketch
from torchtpu.proof.spec import Proof
from torchtpu.proof.store import Store

LOADERS = 20
BATCHES = 4  # of one pass over a data loader
CALLS = 4  # of one module in one step and mode; further ones are counted
TENSORS = 8  # of one call's inputs, and of its outputs
MOST_CALLS = 20_000  # of all modules in one step
_OPTIONS = (
    "lr", "momentum", "betas", "eps", "weight_decay", "alpha", "rho", "nesterov", "dampening", "amsgrad", "maximize",
)  # fmt: skip
_SCALARS = (int, float, bool, str, type(None))


def tensors(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a structure with their places in it, such as `0` or `1.logits`."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth < 4 and isinstance(value, Mapping):
        for key in value:
            yield from tensors(value[key], f"{path}.{key}".lstrip("."), depth + 1)
    elif depth < 4 and isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from tensors(item, f"{path}.{number}".lstrip("."), depth + 1)


class Recorder:
    """Follows one process of a program."""

    def __init__(self, store: Store, detailed: int, limit: int | None, most_backwards: int | None) -> None:
        self.store = store
        self.names = Names()
        self.detailed = detailed
        self.limit = limit
        self.most_backwards = most_backwards
        self.step, self.made = 1, 0
        self.counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.origins: weakref.WeakKeyDictionary[Any, dict[str, Any] | None] = weakref.WeakKeyDictionary()
        self.calls: dict[tuple[str, str], int] = {}
        self.known: set[str] = set()
        self.sketcher = Sketcher()
        self.local = threading.local()
        self.handles: list[Any] = []
        self.backwards = self.num_loaders = 0
        self.scale = 1.0
        self.recorded = 0
        self.seconds = 0.0
        self.broken: str | None = None

    def safely(self, action: Callable[..., Any]) -> Callable[..., Any]:
        """A hook that costs time of ours and whose faults are not the program's."""

        @functools.wraps(action)
        def hook(*args: Any, **named: Any) -> None:
            if self.broken is not None or not self.store.mine:
                return
            began = time.perf_counter()
            try:
                action(*args, **named)
            except SystemExit:
                raise
            except Exception as error:  # noqa: BLE001  the program goes on, and the comparison is told
                self.broken = f"{action.__name__}: {type(error).__name__}: {error}"[:500]
                self.store.write("note", note="broken", message=self.broken)
            finally:
                self.seconds += time.perf_counter() - began

        return hook

    # Modules.

    def attach(self) -> None:
        """Starts recording module calls."""
        modules = torch.nn.modules.module
        self.handles = [
            modules.register_module_module_registration_hook(lambda parent, _, child: self._registered(parent, child)),
            modules.register_module_forward_pre_hook(self.safely(self.enter)),
            modules.register_module_forward_hook(self.safely(self.leave), always_call=True),
        ]

    def _registered(self, parent: nn.Module, child: nn.Module | None) -> None:
        self.names.registered(parent, child)

    def _detach(self) -> None:
        # The registration hook stays: it costs nothing, and names are needed to the end.
        for handle in self.handles[1:]:
            handle.remove()
        self.handles = self.handles[:1]

    @property
    def stack(self) -> list[tuple[nn.Module, int]]:
        """The modules being called in this thread, each with the number of its call."""
        found: list[tuple[nn.Module, int]] | None = getattr(self.local, "stack", None)
        if found is None:
            found = self.local.stack = []
        return found

    def enter(self, module: nn.Module, inputs: Any) -> None:
        """Before a module's forward."""
        self.stack.append((module, 0))
        if is_wrapper(module):
            return
        name = self.names.of(module)
        mode = _mode(module)
        number = self.calls[name, mode] = self.calls.get((name, mode), 0) + 1
        self.recorded += 1
        if number > CALLS or self.recorded > MOST_CALLS or isinstance(module, torch.jit.ScriptModule):
            return
        self.stack[-1] = (module, number)
        if name not in self.known:
            self.known.add(name)
            self.store.write("module", name=name, type=type(module).__name__, **_places(module))
        self.store.write(
            "enter", name=name, mode=mode, call=number, step=self.step, inputs=self._all(inputs), depth=len(self.stack)
        )

    def leave(self, module: nn.Module, _inputs: Any, outputs: Any) -> None:
        """After a module's forward, also after one that failed."""
        stack = self.stack
        while stack and stack[-1][0] is not module:
            stack.pop()
        if not stack:
            return
        _, number = stack.pop()
        if number:
            self._left(module, number, outputs)

    def _left(self, module: nn.Module, number: int, outputs: Any) -> None:
        name, mode = self.names.of(module), _mode(module)
        self.store.write("leave", name=name, mode=mode, call=number, step=self.step, outputs=self._all(outputs))
        for path, tensor in list(tensors(outputs))[:TENSORS]:
            if torch.is_grad_enabled() and tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(self._gradient_hook(name, number, path, self.step))  # type: ignore[no-untyped-call]

    def _gradient_hook(self, name: str, number: int, path: str, step: int) -> Callable[[torch.Tensor], None]:
        def gradient(value: torch.Tensor) -> None:
            found = _scaled(sketch(value), 1.0 / (self.scale or 1.0))
            self.store.write("gradient", name=name, call=number, path=path, step=step, value=found)

        return self.safely(gradient)

    def _all(self, value: Any) -> dict[str, Any]:
        found = list(tensors(value))[:TENSORS]
        return {path: self.sketcher(tensor) for path, tensor in found}

    # Batches, losses and steps.

    def made_loader(self, loader: Any) -> None:
        """When a data loader has been made: what decides which batches it gives."""
        self.num_loaders += 1
        loader.__dict__["_torchtpu_number"] = self.num_loaders
        if self.num_loaders <= LOADERS:
            self.store.write(
                "loader", place=frames.caller(), batch_size=loader.batch_size, drop_last=loader.drop_last,
                sampler=type(loader.sampler).__name__, length=_length(loader.dataset),
            )  # fmt: skip

    def loaded(self, iterator: Any, batch: Any) -> None:
        """When a data loader has given a batch: its first ones of each pass."""
        number = iterator.__dict__["_torchtpu_batches"] = iterator.__dict__.get("_torchtpu_batches", 0) + 1
        if number <= BATCHES and self.step <= self.detailed:
            items = {path: checksum(tensor) for path, tensor in list(tensors(batch))[:TENSORS]}
            self.store.write("batch", loader=iterator.__dict__.get("_torchtpu_number"), number=number, items=items)

    def backward(self, roots: Any) -> None:
        """Before gradients are asked for: what of is the loss, as a rule."""
        self.backwards += 1
        self._spot("backward")
        found = [roots] if isinstance(roots, torch.Tensor) else list(roots)
        for root in found[-1:]:
            loss = getattr(root, "_torchtpu_unscaled", root).detach()
            value = float(loss) if loss.numel() == 1 else None
            # A scaler's factor is no difference: gradients are recorded as those of the loss itself.
            self.scale = float(root.detach()) / value if loss is not root and value else 1.0
            self.store.write(
                "loss", step=self.step, number=self.backwards, value=_plain(value), dtype=_dtype(loss),
                device=loss.device.type, count=loss.numel(), scale=_plain(self.scale),
            )  # fmt: skip
        if self.most_backwards is not None and self.backwards > self.most_backwards:
            self.store.write(
                "note", note="no-steps", message=f"{self.backwards} backward passes, {self.step - 1} steps"
            )
            raise steps.StepsReached(0)

    def _spot(self, what: str, place: dict[str, Any] | None = None) -> None:
        """The user's line that steps or goes backward, where it is first met."""
        if what not in self.known:
            self.known.add(what)
            self.store.write("module", name=what, type="", defined=None, called=place or frames.caller())

    def made_optimizer(self, optimizer: Any) -> None:
        """When an optimizer is made."""
        self.origins[optimizer] = frames.caller()

    def before_step(self, optimizer: Any) -> None:
        """Before an optimizer changes parameters."""
        if optimizer not in self.numbers:
            self.numbers[optimizer] = len(self.numbers)
            self._spot(f"optimizer {self.numbers[optimizer]}", self.origins.get(optimizer))
        count = self.counts.get(optimizer, 0) + 1
        self._spot("step")
        if self.limit is not None and count > self.limit:
            return
        named = self._named(optimizer)
        if count == 1:
            self._state("start", 0, optimizer, named)
        scale = getattr(optimizer, "grad_scale", None)
        factor = 1.0 if scale is None else 1.0 / float(scale)
        square, values, unset = 0.0, {}, []
        for name, parameter in named.items():
            if parameter.grad is None:
                unset.append(name)
                continue
            if self._is_detailed(count):
                values[name] = _scaled(sketch(parameter.grad), factor)
                square += values[name].get("norm", 0.0) ** 2
            else:
                square += _square(parameter.grad) * factor**2
        self.store.write(
            "step", step=self.step, optimizer=self.numbers[optimizer], count=count, type=type(optimizer).__name__,
            groups=_groups(optimizer), norm=_plain(square**0.5), unset=unset, gradients=values,
            devices=sorted({parameter.device.type for parameter in named.values()}), time=time.time(),
        )  # fmt: skip

    def after_step(self, optimizer: Any) -> None:
        """After an optimizer has changed parameters."""
        count = self.counts[optimizer] = self.counts.get(optimizer, 0) + 1
        self.made = max(self.made, count)
        if self._is_detailed(count):
            self._state("state", count, optimizer, self._named(optimizer))
        if count >= self.step:
            self._next_step(count + 1)

    def _next_step(self, step: int) -> None:
        if self.step <= self.detailed:
            self._write_calls()
        self.step = step
        self.calls.clear()
        self.sketcher.forget()
        self.recorded = 0
        if step > self.detailed:
            self._detach()

    def _write_calls(self) -> None:
        counts = [[name, mode, number] for (name, mode), number in sorted(self.calls.items())]
        self.store.write("calls", step=self.step, counts=counts)

    def _is_detailed(self, count: int) -> bool:
        return count <= self.detailed or count == self.limit

    def _named(self, optimizer: Any) -> dict[str, nn.Parameter]:
        names: dict[int, str] = {}
        for name, parameter in self.names.parameters().items():
            names.setdefault(id(parameter), name)
        found: dict[str, nn.Parameter] = {}
        for group_number, group in enumerate(optimizer.param_groups):
            for number, parameter in enumerate(group["params"]):
                unknown = f"optimizer{self.numbers.get(optimizer, 0)}.{group_number}.{number}"
                found[names.get(id(parameter), unknown)] = parameter
        return found

    def _state(self, kind: str, count: int, optimizer: Any, named: dict[str, nn.Parameter]) -> None:
        members = self.names.parameters()
        held: dict[int, list[str]] = {}
        for name, member in members.items():
            held.setdefault(id(member), []).append(name)
        mine = {id(parameter) for parameter in named.values()}
        first = {names[0]: members[names[0]] for names in held.values()}
        self.store.write(
            kind, step=self.step, optimizer=self.numbers[optimizer], count=count,
            parameters={name: sketch(value) for name, value in {**first, **named}.items()},
            buffers={name: sketch(value) for name, value in self.names.buffers().items()},
            memory=_memory(optimizer, named),
            ties=[names for names in held.values() if len(names) > 1],
            outside=[name for name, value in first.items() if id(value) not in mine and value.requires_grad],
            frozen=[name for name, value in first.items() if not value.requires_grad],
        )  # fmt: skip

    def finish(self) -> None:
        """At the end of the program, while the interpreter is whole."""
        if not self.store.mine or self.store.bytes == 0:
            return
        if self.step <= self.detailed:
            self._write_calls()
        draws = sys.modules.get("torchtpu.proof.draws")
        for draw in draws.log() if draws is not None else ():
            self.store.write("draw", **draw)
        self.store.write(
            "end", steps=self.made, backwards=self.backwards, lost=self.store.lost,
            bytes=self.store.bytes, seconds=round(self.seconds, 3), broken=self.broken,
        )  # fmt: skip


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError):  # a stream has none
        return None


def _mode(module: nn.Module) -> str:
    return ("train" if module.training else "eval") + ("" if torch.is_grad_enabled() else "-nograd")


def _plain(value: float | None) -> float | str | None:
    """A number as JSON has it; one that is not finite as text."""
    return value if value is None or abs(value) < float("inf") else str(value)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _square(gradient: torch.Tensor) -> float:
    flat = on_host(gradient)
    return 0.0 if flat is None else float(torch.linalg.vector_norm(flat, dtype=torch.float64)) ** 2


def _scaled(record: dict[str, Any], factor: float) -> dict[str, Any]:
    """A sketch of the unscaled gradient, where the optimizer itself is to take the scale off."""
    if factor == 1.0:
        return record
    changed: dict[str, Any] = {key: record[key] * factor for key in ("norm", "mean", "low", "high") if key in record}
    return {**record, **changed, "factor": factor}


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    return [
        {
            **{key: _option(group[key]) for key in _OPTIONS if key in group},
            "parameters": sum(parameter.numel() for parameter in group["params"]),
        }
        for group in optimizer.param_groups
    ]


def _option(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _plain(float(value)) if value.numel() == 1 else None
    if isinstance(value, list | tuple):
        return [_option(item) for item in value]
    return value if isinstance(value, _SCALARS) else str(value)


def _memory(optimizer: Any, named: dict[str, nn.Parameter]) -> dict[str, Any]:
    """Sketches of what the optimizer keeps for each parameter."""
    return {
        f"{name}:{key}": sketch(value)
        for name, parameter in named.items()
        for key, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, torch.Tensor)
    }


def _places(module: nn.Module) -> dict[str, Any]:
    """Where a module's class says what it computes, and the user's line that calls it."""
    code = getattr(type(module).forward, "__code__", None)
    source = None
    if code is not None and frames.is_users(code.co_filename):
        source = frames.describe(code.co_filename, code.co_firstlineno, code.co_name)
    return {"defined": source, "called": frames.caller()}


made: Recorder | None = None


def install(proof: Proof) -> Recorder | None:
    """Starts recording in this process, where the comparison asks for it; before the hooks that end a program."""
    global made
    from torch.optim import optimizer as optimizers

    if proof.record is None:
        return None
    limit = os.environ.get(steps.LIMIT_VARIABLE)
    most = int(limit) if limit else None
    store = Store(proof.record, {"detailed": proof.record_steps, "limit": most, "torch": torch.__version__})
    recorder = made = Recorder(store, proof.record_steps, most, proof.most_backwards)
    recorder.attach()
    before, after = recorder.safely(recorder.before_step), recorder.safely(recorder.after_step)
    optimizers.register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer))
    optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer))
    _hook_backward(torch, recorder.safely(recorder.backward))
    _hook_making(optimizers.Optimizer, recorder.safely(recorder.made_optimizer))
    imports.after_import("torch.utils.data.dataloader", lambda module: _hook_loader(module, recorder))
    # Runs before every atexit function, while the device is still there.
    threading._register_atexit(recorder.finish)  # type: ignore[attr-defined]
    return recorder


def _hook_backward(module: Any, seen: Callable[[Any], None]) -> None:
    backward = module.autograd.backward

    @functools.wraps(backward)
    def recording(roots: Any, *rest: Any, **named: Any) -> Any:
        seen(roots)
        return backward(roots, *rest, **named)

    module.autograd.backward = recording


def _hook_making(optimizer: type, seen: Callable[[Any], None]) -> None:
    make = optimizer.__init__  # type: ignore[misc]

    @functools.wraps(make)
    def making(self: Any, *arguments: Any, **named: Any) -> None:
        seen(self)
        make(self, *arguments, **named)

    optimizer.__init__ = making  # type: ignore[misc]


def _hook_loader(module: Any, recorder: Recorder) -> None:
    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    make, start, following = loader.__init__, iterator.__init__, iterator.__next__
    made, loaded = recorder.safely(recorder.made_loader), recorder.safely(recorder.loaded)

    @functools.wraps(make)
    def making(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        made(self)

    @functools.wraps(start)
    def starting(self: Any, of: Any) -> None:
        start(self, of)
        self._torchtpu_number = of.__dict__.get("_torchtpu_number")

    @functools.wraps(following)
    def giving(self: Any) -> Any:
        batch = following(self)
        loaded(self, batch)
        return batch

    loader.__init__, iterator.__init__, iterator.__next__ = making, starting, giving
