"""How far the device's results are from the CPU's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

TOLERANCE = 1e-3


@dataclass(frozen=True)
class Difference:
    """What a comparison found.

    Attributes:
        absolute: Largest absolute difference.
        relative: The same over the largest magnitude of the reference, at least one.
        why: What differs besides values (structure, shape, type, NaN), or an empty text.
        vacuous: Whether the reference is all zero, constant or empty, so that it shows little.
    """

    absolute: float = 0.0
    relative: float = 0.0
    why: str = ""
    vacuous: bool = False

    @property
    def matches(self) -> bool:
        """Whether the results agree within the tolerance."""
        return not self.why and self.relative <= TOLERANCE


def to_host(results: Any) -> Any:
    """Copies every tensor of a result to the CPU, which also waits for the device."""
    return pytree.tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf, results)


def compare(expected: Any, actual: Any) -> Difference:
    """Compares two results of a case, tensor by tensor and number by number."""
    left, right = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    if len(left) != len(right):
        return Difference(why=f"{len(right)} results instead of {len(left)}")
    parts = [_leaf(one, other) for one, other in zip(left, right, strict=True)]
    if not parts:
        return Difference(vacuous=True)
    return Difference(
        max(part.absolute for part in parts),
        max(part.relative for part in parts),
        next((part.why for part in parts if part.why), ""),
        all(part.vacuous for part in parts),
    )


def _leaf(expected: Any, actual: Any) -> Difference:
    if isinstance(expected, torch.Tensor):
        return _tensor(expected, actual)
    if isinstance(expected, (bool, int, float)):
        if not isinstance(actual, (bool, int, float)):
            return Difference(why=f"{type(actual).__name__} instead of {type(expected).__name__}")
        difference = abs(float(expected) - float(actual))
        return Difference(difference, difference / max(1.0, abs(float(expected))))
    return Difference(why="" if expected == actual else f"{actual!r} instead of {expected!r}")


def _tensor(expected: torch.Tensor, actual: Any) -> Difference:
    if not isinstance(actual, torch.Tensor):
        return Difference(why=f"{type(actual).__name__} instead of a tensor")
    if expected.is_sparse:
        expected, actual = expected.to_dense(), actual.to_dense()
    if expected.shape != actual.shape:
        return Difference(why=f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}")
    if expected.dtype != actual.dtype:
        return Difference(why=f"{actual.dtype} instead of {expected.dtype}")
    if expected.numel() == 0:
        return Difference(vacuous=True)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, other = expected.to(wide), actual.to(wide)
    unknown = torch.isnan(one.abs())
    if not torch.equal(unknown, torch.isnan(other.abs())):
        return Difference(why="NaN in other places")
    gap = (one - other).abs()
    gap[(one == other) | unknown] = 0
    size = one.abs()[torch.isfinite(one.abs())]
    scale = max(1.0, size.max().item() if size.numel() else 1.0)
    largest = gap.max().item()
    ratio = largest / scale if math.isfinite(largest) else math.inf
    return Difference(largest, ratio, vacuous=bool((one == one.flatten()[0]).all()))
