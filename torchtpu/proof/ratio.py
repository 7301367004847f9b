"""The error ratio: how far a run is from the reference, in units of what rounding alone does to it.

The unit of a tensor is the largest of

- the distance of each jittered run from the reference (weights moved by one float32 unit in the last place, in one of
  them also every sum by what another order of adding up would move it; see `torchtpu.proof.sums`);
- the median relative distance of that run's tensors of the same kind and step, times the tensor's own norm:
  one jitter is one random sample, and a tensor of few elements may by chance not move at all;
- the floor of the precision times its norm.

Measured on a character GPT (4 layers, 0.8 M parameters, 20 AdamW steps, float32, five jitters, simulated device):
device against CPU has a median ratio of 1.1; the largest are 1.36 for module outputs, 1.41 for their gradients,
2.45 for gradients of parameters, 1.44 for parameters and 5.8 for squares that AdamW keeps; one jitter against another
reaches 3.8 (AdamW turns the sign of a gradient near zero into a whole step).

In low precision (products of bfloat16 inputs) module outputs have ratios up to 1.1. There is one run to take the unit
from, whose loss may by chance be right to 3e-6; so the floor is a part of bfloat16's own precision, 2**-9.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchtpu.proof.recording import Tensor


@dataclass(frozen=True)
class Scale:
    """What counts as an error in one precision.

    Attributes:
        limit: Error ratio above which a difference counts.
        floor: Least unit of a tensor.
        scalar_floor: Least unit of a number, or of a tensor of a few.
    """

    limit: float
    floor: float
    scalar_floor: float


FLOAT32 = Scale(10.0, 2.0**-24 * 2, 2.0**-24 * 8)
LOW = Scale(3.0, 2.0**-10, 2.0**-11)


@dataclass(frozen=True)
class Error:
    """How far one tensor is from the reference.

    Attributes:
        ratio: The error ratio; infinite where shape, kind or finiteness differ.
        relative: Distance over the reference's norm.
        unit: The relative distance that rounding alone makes.
    """

    ratio: float
    relative: float
    unit: float


class Units:
    """The units of a family of tensors: all outputs of one step, say."""

    def __init__(
        self, reference: Mapping[Any, Tensor], jitters: Iterable[Mapping[Any, Tensor]], scale: Scale = FLOAT32
    ) -> None:
        self._reference = reference
        self._scale = scale
        self._relative: dict[Hashable, float] = {}
        medians = []
        for jitter in jitters:
            moved = {key: _relative(tensor, jitter[key]) for key, tensor in reference.items() if key in jitter}
            finite = {key: value for key, value in moved.items() if math.isfinite(value)}
            for key, value in finite.items():
                self._relative[key] = max(value, self._relative.get(key, 0.0))
            medians += [statistics.median(finite.values())] if finite else []
        self._least = max([scale.floor, *medians])

    def error(self, key: Hashable, other: Tensor) -> Error:
        """The error of another run's tensor."""
        tensor = self._reference[key]
        relative = _relative(tensor, other)
        unit = max(self._relative.get(key, 0.0), self._least, self._scale.scalar_floor if tensor.size < 16 else 0.0)
        return Error(relative / unit if relative else 0.0, relative, unit)


def _relative(reference: Tensor, other: Tensor) -> float:
    distance = reference.distance(other)
    if distance == 0.0 or math.isinf(distance):
        return distance
    return distance / reference.norm if reference.norm else math.inf


def scalars(
    reference: list[float], jitters: list[list[float]], other: list[float], scale: Scale = FLOAT32
) -> list[Error]:
    """Errors of a curve; the unit of a point is the largest one so far, since errors grow and single ones are 0."""
    found, unit = [], scale.scalar_floor
    for number, (value, seen) in enumerate(zip(reference, other, strict=False)):
        near = [_apart(value, jitter[number]) for jitter in jitters if number < len(jitter)]
        unit = max([unit, *(distance for distance in near if math.isfinite(distance))])
        relative = _apart(value, seen)
        found.append(Error(relative / unit, relative, unit))
    return found


def _apart(value: float, other: float) -> float:
    if value == other:
        return 0.0
    if not (math.isfinite(value) and math.isfinite(other)):
        return math.inf
    return abs(other - value) / abs(value) if value else math.inf
