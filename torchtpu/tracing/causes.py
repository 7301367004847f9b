"""Signatures of operator calls, and what about one of them made the backend compile anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

FIRST = "first use of the operator"
UNSEEN = "the same arguments as before: their layout, or a constant inside, differs"
_MOST = 64


@dataclass(frozen=True)
class Signature:
    """What a compiled program depends on.

    Attributes:
        shapes: Of the tensors, in order; those of lists too.
        dtypes: Of the tensors.
        constants: The other arguments as text, by position or name.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]


def shown(shapes: Iterable[Iterable[int]]) -> str:
    """Shapes as people write them."""
    return ", ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)


@dataclass
class Causes:
    """The signatures each operator was compiled for so far."""

    seen: dict[str, list[Signature]] = field(default_factory=dict)

    def of(self, operator: str, signature: Signature) -> str:
        """Why the operator is compiled for this signature: what differs from the one that is most like it."""
        known = self.seen.setdefault(operator, [])
        cause = FIRST if not known else min((_difference(old, signature) for old in known), key=_weight)[1]
        if signature not in known:
            del known[: len(known) - _MOST + 1]
            known.append(signature)
        return cause


def _weight(found: tuple[int, str]) -> int:
    return found[0]


def _difference(old: Signature, new: Signature) -> tuple[int, str]:
    parts: list[str] = []
    weight = abs(len(old.shapes) - len(new.shapes))
    if len(old.shapes) != len(new.shapes):
        parts.append(f"{len(new.shapes)} tensors instead of {len(old.shapes)}")
    else:
        changed = [i for i, (a, b) in enumerate(zip(old.shapes, new.shapes, strict=True)) if a != b]
        weight += len(changed)
        if changed:
            first, then = shown([old.shapes[changed[0]]]), shown([new.shapes[changed[0]]])
            more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
            parts.append(f"shape {then} instead of {first} (tensor {changed[0]}{more})")
        kinds = [(a, b) for a, b in zip(old.dtypes, new.dtypes, strict=True) if a != b]
        weight += len(kinds)
        if kinds:
            parts.append(f"dtype {kinds[0][1]} instead of {kinds[0][0]}")
    before, now = dict(old.constants), dict(new.constants)
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            weight += 1
            parts.append(f"constant {name}: {now.get(name, 'absent')} instead of {before.get(name, 'absent')}")
    return weight, "; ".join(parts[:3]) or UNSEEN


def signature(args: tuple[Any, ...], kwargs: dict[str, Any], tensor: type) -> tuple[Signature, list[Any]]:
    """The signature of a call, and its tensors."""
    tensors: list[Any] = []
    constants: list[tuple[str, str]] = []
    for name, value in [*((str(i), a) for i, a in enumerate(args)), *kwargs.items()]:
        inside = value if isinstance(value, list | tuple) else [value]
        mine = [one for one in inside if isinstance(one, tensor)]
        tensors += mine
        if not mine:
            constants.append((name, str(value)[:80]))
    shapes = tuple(tuple(int(size) for size in one.shape) for one in tensors)
    dtypes = tuple(str(one.dtype).removeprefix("torch.") for one in tensors)
    return Signature(shapes, dtypes, tuple(constants)), tensors
