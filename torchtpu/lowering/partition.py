"""Cuts a recorded step into the programs that TorchTPU launches for it, each a small step of its own.

Without torch.compile TorchTPU compiles and launches a program for every operator. A view is no program: it goes into
those that read it. What torch.compile was given is two programs, forward and backward. With ``DEFER_AND_FUSE`` the
operators between those run together too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from torchtpu.lowering.places import NOWHERE

Step = dict[str, Any]
Mode = Literal["launched", "operators"]

# They make another view of a tensor, and nothing of their own.
VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "_unsafe_view.default", "alias.default", "as_strided.default", "detach.default", "diagonal.default",
        "expand.default", "movedim.int", "narrow.default", "permute.default", "select.int", "slice.Tensor",
        "split.Tensor", "split_with_sizes.default", "squeeze.default", "squeeze.dim", "squeeze.dims", "t.default",
        "transpose.int", "unbind.int", "unfold.default", "unsqueeze.default", "view.default", "view.dtype",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A program of a step.

    Attributes:
        kind: ``operator``, ``compiled`` or ``deferred``.
        operators: Positions in the step of what it computes, views that only lead there left out.
        step: The same as a step of its own.
    """

    kind: str
    operators: tuple[int, ...]
    step: Step


def partition(step: Step, mode: Mode = "launched") -> list[Part]:
    """Returns the programs of a step in the order of their launches.

    Args:
        step: The recording.
        mode: ``launched`` goes by what the program gives to torch.compile and by its eager mode; ``operators``
            takes every operator by itself.
    """
    computing = [at for at, entry in enumerate(step["operators"]) if entry["op"] not in VIEWS]
    cutter = _Cutter(step)
    return [Part(kind, members, cutter.cut(members)) for kind, members in _groups(step, computing, mode)]


def _groups(step: Step, computing: list[int], mode: Mode) -> Iterator[tuple[str, tuple[int, ...]]]:
    if mode == "operators":
        yield from (("operator", (at,)) for at in computing)
        return
    deferred = bool(step.get("deferred")) and any(step["operators"][at].get("region") for at in computing)

    def key(at: int) -> tuple[Any, ...]:
        entry = step["operators"][at]
        region = entry.get("region")
        if region is not None:
            return ("compiled", region, entry["phase"])
        return ("deferred",) if deferred else ("operator", at)

    for name, members in _together(groupby(computing, key)):
        yield str(name[0]), members


def _together(groups: Any) -> Iterator[tuple[tuple[Any, ...], tuple[int, ...]]]:
    """Groups of neighbours, those of one compiled program joined where others come in between.

    Autograd interleaves the sums of gradients, which are no part of the program, with its backward operators.
    """
    found: list[tuple[tuple[Any, ...], list[int]]] = []
    compiled: dict[tuple[Any, ...], list[int]] = {}
    for name, members in groups:
        known = compiled.get(name)
        if known is not None:
            known.extend(members)
            continue
        found.append((name, list(members)))
        if name[0] == "compiled":
            compiled[name] = found[-1][1]
    yield from ((name, tuple(members)) for name, members in found)


def _tensors(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        if "tensor" in value:
            yield value["tensor"]
    elif isinstance(value, list):
        for item in value:
            yield from _tensors(item)


class _Cutter:
    """Makes small steps out of a large one."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.operators: list[Step] = step["operators"]
        self.described = _descriptions(step)
        self.maker: dict[int, int] = {}
        self.users: dict[int, set[int]] = {}
        for at, entry in enumerate(self.operators):
            for number in self._read(entry):
                self.users.setdefault(number, set()).add(at)
            for number in entry["results"]:
                if number is not None:
                    self.maker.setdefault(number, at)
        # What is written in place was there before.
        for entry in step["inputs"]:
            self.maker.pop(entry["tensor"], None)
        self.kept = set(step["kept"])

    def _read(self, entry: Step) -> list[int]:
        return list(_tensors([entry["args"], list(entry["kwargs"].values())]))

    def cut(self, members: tuple[int, ...]) -> Step:
        """The operators, the views they look through, what goes in and what others need of it."""
        inside = set(members)
        for at in members:
            self._add_views(at, inside)
        order = sorted(inside)
        made = {number for at in order for number in self.operators[at]["results"] if number is not None}
        made = {number for number in made if self.maker.get(number) in inside}
        read = [number for at in order for number in self._read(self.operators[at])]
        inputs = list(dict.fromkeys(number for number in read if number not in made))
        kept = [number for number in sorted(made) if self._is_needed(number, inside)]
        return _plain(order, self.operators, [self.described[number] for number in inputs], kept, self.step)

    def _add_views(self, at: int, inside: set[int]) -> None:
        for number in self._read(self.operators[at]):
            maker = self.maker.get(number)
            if maker is not None and maker not in inside and self.operators[maker]["op"] in VIEWS:
                inside.add(maker)
                self._add_views(maker, inside)

    def _is_needed(self, number: int, inside: set[int]) -> bool:
        """Whether something outside reads a tensor made inside, itself or through views."""
        maker = self.operators[self.maker[number]]
        if maker["op"] in VIEWS:
            return False
        return self._is_read(number, inside)

    def _is_read(self, number: int, inside: set[int]) -> bool:
        if number in self.kept:
            return True
        for user in self.users.get(number, ()):
            if user not in inside and self.operators[user]["op"] not in VIEWS:
                return True
            if self.operators[user]["op"] in VIEWS and any(
                self._is_read(made, inside) for made in self.operators[user]["results"] if made is not None
            ):
                return True
        return False


def _descriptions(step: Step) -> dict[int, Step]:
    found = {entry["tensor"]: entry for entry in step["inputs"]}
    for entry in step["operators"]:
        numbers = [number for number in entry["results"] if number is not None]
        for number, shape in zip(numbers, entry["shapes"], strict=True):
            found.setdefault(number, {"tensor": number, **shape, "from_host": False, "name": ""})
    return found


def _plain(order: list[int], operators: list[Step], inputs: list[Step], kept: list[int], step: Step) -> Step:
    """A step with numbers from 0 and without places, so that equal programs are equal texts."""
    names: dict[Any, int] = {}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict) and "tensor" in value:
            return {"tensor": names.setdefault(value["tensor"], len(names))}
        return [renamed(item) for item in value] if isinstance(value, list) else value

    placed, played = list[Step](), list[Step]()
    for entry in inputs:
        number, order_of_dims = names.setdefault(entry["tensor"], len(names)), _permutation(entry)
        placed.append({**entry, "tensor": number, "name": ""})
        if order_of_dims is not None:
            base = names[f"base of {number}"] = len(names)
            placed[-1] |= {"tensor": base, "shape": [entry["shape"][dim] for dim in order_of_dims]}
            back = [order_of_dims.index(dim) for dim in range(len(order_of_dims))]
            played.append(_permuted(base, back, number, entry))
    for at in order:
        entry = operators[at]
        played.append(
            {
                "op": entry["op"],
                "args": renamed(entry["args"]),
                "kwargs": {name: renamed(value) for name, value in entry["kwargs"].items()},
                "results": [None if n is None else names.setdefault(n, len(names)) for n in entry["results"]],
                "shapes": entry["shapes"],
                "stack": 0,
                "phase": entry["phase"],
            }
        )
    return {
        "format": step["format"],
        "inputs": placed,
        "operators": played,
        "kept": [names[number] for number in kept],
        "stacks": [[list(NOWHERE)]],
        "reads": [],
        "notes": [],
    }


def _permutation(entry: Step) -> list[int] | None:
    """The order of the dimensions in memory, of a tensor that fills its memory in another order than its own."""
    shape, stride = entry["shape"], entry["stride"]
    order = sorted(range(len(shape)), key=lambda dim: (-stride[dim], dim))
    expected, plain = 1, True
    for dim in reversed(range(len(shape))):
        plain = plain and (shape[dim] == 1 or stride[dim] == expected)
        expected *= shape[dim]
    return None if plain else order


def _permuted(base: int, order: list[int], number: int, entry: Step) -> Step:
    return {
        "op": "aten.permute.default",
        "args": [{"tensor": base}, order],
        "kwargs": {},
        "results": [number],
        "shapes": [{name: entry[name] for name in ("shape", "stride", "dtype")}],
        "stack": 0,
        "phase": "forward",
    }


def distinct(parts: list[Part]) -> list[tuple[Part, int]]:
    """Each different program once, and how often the step launches it."""
    found: dict[str, tuple[Part, int]] = {}
    for part in parts:
        text = json.dumps([part.step["inputs"], part.step["operators"], part.step["kept"]], sort_keys=True)
        first, times = found.get(text, (part, 0))
        found[text] = (first, times + 1)
    return list(found.values())
