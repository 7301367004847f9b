"""Lowers a recorded step to StableHLO with TorchTPU, which takes each operator as it takes one of a program.

TorchTPU writes into its program which Python function, file and line asked for each operation. Each
recorded operator is therefore called by a function that bears the user's file and line and a name with
the operator's number: the StableHLO, and whatever the compiler makes of it, names both.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch

from torchtpu.lowering.places import OPERATOR, place_of
from torchtpu.lowering.values import decode


class LoweringError(RuntimeError):
    """TorchTPU cannot take an operator of the step; says which and from where."""


@dataclass(frozen=True)
class Lowered:
    """A step as a program of the compiler.

    Attributes:
        text: StableHLO, with debug information.
        inputs: Name, shape and type of each argument, in order.
        donated: Which argument's buffer each result may take: result by argument.
        results: How many results it has.
        notes: What was left out or assumed.
    """

    text: str
    inputs: list[dict[str, Any]]
    donated: dict[int, int]
    results: int
    notes: list[str] = field(default_factory=list)


def _operator(name: str) -> Any:
    namespace, operator, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), operator), overload)


def _running(combine: Callable[[Any, Any], Any], neutral: float) -> Callable[..., Any]:
    """A running sum or product by doubling: after n rounds, each element holds what the last 2^n come to."""

    def run(x: Any, dim: int, *, dtype: Any = None) -> Any:
        if dtype is not None or not x.is_floating_point():
            x = x.to(dtype or torch.int64)
        if x.dim() == 0:
            return x.clone()
        distance, size = 1, x.shape[dim]
        while distance < size:
            edge = torch.full_like(x.narrow(dim, 0, distance), neutral)
            x = combine(x, torch.cat([edge, x.narrow(dim, 0, size - distance)], dim))
            distance *= 2
        return x

    return run


# TorchTPU lowers these to an operation that jaxlib cannot hand on to a compiler of another version.
_SUBSTITUTES = {
    "aten.cumsum.default": _running(torch.add, 0),
    "aten.cumprod.default": _running(torch.mul, 1),
}


class Replay:
    """The recorded step's tensors while it is played again.

    Args:
        step: The recording.
        tensors: Placeholders of its inputs, by number.
    """

    def __init__(self, step: dict[str, Any], tensors: dict[int, Any]) -> None:
        self.step = step
        self.tensors = tensors
        self.written: set[int] = set()
        self.last_use = _last_uses(step)

    def argument(self, number: int) -> Any:
        """Returns the tensor of a number."""
        return self.tensors[number]

    def run(self, index: int) -> None:
        """Plays one operator."""
        entry = self.step["operators"][index]
        operator = _SUBSTITUTES.get(entry["op"]) or _operator(entry["op"])
        arguments = [self._decoded(value) for value in entry["args"]]
        keywords = {name: self._decoded(value) for name, value in entry["kwargs"].items()}
        try:
            result = self._caller(index, entry)(operator, arguments, keywords)
        except Exception as error:  # whatever it is, it is this operator that TorchTPU cannot take
            raise LoweringError(f"operator {index} {entry['op']}: {error}") from error
        # A kernel may leave out a result that the schema names, such as the state of random numbers.
        leaves = torch.utils._pytree.tree_leaves(result)
        pairs = zip(entry["results"], leaves, strict=False)
        self.tensors.update((number, leaf) for number, leaf in pairs if number is not None)
        self._forget(index)

    def _caller(self, index: int, entry: dict[str, Any]) -> Any:
        file, line, function = place_of(self.step, entry)
        code = _call.__code__.replace(
            co_filename=file, co_firstlineno=line, co_name=f"{OPERATOR}{index}.{function}", co_qualname=OPERATOR
        )
        return FunctionType(code, {})

    def _decoded(self, value: Any) -> Any:
        if isinstance(value, dict) and "scalar" in value:
            number, kind = value["scalar"]
            return torch.tensor(decode(number, self.argument), dtype=getattr(torch, kind))
        if isinstance(value, list):
            return [self._decoded(item) for item in value]
        return decode(value, self.argument)

    def _forget(self, index: int) -> None:
        for number in self.last_use.get(index, ()):
            self.tensors.pop(number, None)


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OUR_LINES = re.compile(r'("torchtpu/lowering/\w+\.py"):\d+:\d+')


# One line, so that the line the function bears is the line of the call.
_call = lambda operator, arguments, keywords: operator(*arguments, **keywords)  # noqa: E731


def _numbers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [value["tensor"]] if "tensor" in value else []
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return []


def _last_uses(step: dict[str, Any]) -> dict[int, list[int]]:
    kept = set(step["kept"]) | {entry["tensor"] for entry in step["inputs"]}
    last: dict[int, int] = {}
    for index, entry in enumerate(step["operators"]):
        for number in (*_numbers([entry["args"], list(entry["kwargs"].values())]), *entry["results"]):
            if number is not None:
                last[number] = index
    found: dict[int, list[int]] = {}
    for number, index in last.items():
        if number not in kept:
            found.setdefault(index, []).append(number)
    return found


def changed_inputs(step: dict[str, Any]) -> list[int]:
    """Returns which inputs the step writes to, by position.

    A view of an input counts as the input.
    """
    base: dict[int, int] = {entry["tensor"]: position for position, entry in enumerate(step["inputs"])}
    changed: set[int] = set()
    for entry in step["operators"]:
        schema = _operator(entry["op"])._schema
        positional = enumerate(entry["args"])
        given = {schema.arguments[at].name: value for at, value in positional} | entry["kwargs"]
        for argument in schema.arguments:
            alias, value = argument.alias_info, given.get(argument.name)
            if alias is None:
                continue
            owners = [base[number] for number in _numbers(value) if number in base]
            if alias.is_write:
                changed.update(owners)
            elif owners:
                for number in entry["results"]:
                    base.setdefault(number, owners[0])
    return sorted(changed)


def lower(step: dict[str, Any]) -> Lowered:
    """Lowers a recorded step; TorchTPU and a client, simulated or not, must be up in this process.

    Raises:
        LoweringError: TorchTPU does not take an operator.
    """
    from torch_tpu._internal.compile import tpu_torch_compile as backend
    from torch_tpu._internal.execution_mode import execution_mode_impl as modes

    modes._push_eager_mode(modes._EagerMode.INTERNAL_COMPILE_FX_GRAPH)
    backend.push_enable_tracebacks(True)
    try:
        return _lower(step, backend)
    finally:
        backend.pop_enable_tracebacks()
        modes._pop_eager_mode()


@contextlib.contextmanager
def _random_state(backend: Any) -> Iterator[Callable[[], Any]]:
    """Makes the state of random numbers a tensor of the program; yields what returns the state as it is then."""
    device: Any = torch.tpu  # type: ignore[attr-defined]
    generator = backend.make_export_mode_device_generator(device.default_generators[0])
    backend.set_export_mode_default_device_generator(generator)
    try:
        yield lambda: backend.get_device_state_tensor(generator)
    finally:
        backend.clear_export_mode_default_device_generators()


def _lower(step: dict[str, Any], backend: Any) -> Lowered:
    inputs = list(step["inputs"])
    places = [backend.placeholder(entry["shape"], getattr(torch, entry["dtype"]), False) for entry in inputs]
    # An argument that is written to could not be told from its new value.
    tensors = {entry["tensor"]: place.clone() for entry, place in zip(inputs, places, strict=True)}
    replay = Replay(step, tensors)
    with _random_state(backend) as state:
        before = state()
        with torch.no_grad():
            for index in range(len(step["operators"])):
                replay.run(index)
        after = state()
    changed = changed_inputs(step)
    results = [replay.tensors[inputs[position]["tensor"]] for position in changed]
    results += [replay.tensors[number] for number in step["kept"] if replay.tensors.get(number) is not None]
    if not results:
        raise LoweringError("the step computes nothing that is kept")
    if before.data_ptr() != after.data_ptr():
        changed.append(len(places))
        inputs.append({"name": "random state", "shape": list(before.shape), "dtype": str(before.dtype)[6:]})
        places.append(before)
        results.insert(len(changed) - 1, after)
    module = backend.build_mlir(results, places)
    text = backend.serialize_mlir_text(module, enable_debug_info=True)
    return Lowered(
        # Our own lines say nothing of the program, and would make it another whenever they move.
        text=_OUR_LINES.sub(r"\1:1:0", text.replace(_HERE, "torchtpu/")),
        inputs=inputs,
        donated={position: number for number, position in enumerate(changed)},
        results=len(results),
        notes=_notes(step),
    )


def _notes(step: dict[str, Any]) -> list[str]:
    replaced = sorted({entry["op"] for entry in step["operators"]} & set(_SUBSTITUTES))
    return [f"{name} is lowered as additions or products by doubling, not as TorchTPU's scan" for name in replaced]
