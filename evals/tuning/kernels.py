"""Profiles a compiled JAX step, whose attention kernels are charged as those of TorchTPU are."""

from __future__ import annotations

from typing import Any

from torchtpu.compiler import Compiled
from torchtpu.profile import Profiler
from torchtpu.targets import Target

_NOTHING: dict[str, Any] = {"inputs": [], "operators": [], "kept": [], "stacks": [], "reads": [], "notes": []}
# Products over the square of scores: two forward, five backward.
_PRODUCTS = {"forward": 2, "backward": 5}


class KernelProfiler(Profiler):
    """A profile of a program whose hand-written kernels are attention, forward and backward, of known sizes."""

    def __init__(self, compiled: Compiled, target: Target, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        super().__init__(_NOTHING, compiled, target)

    def _kernels(self) -> dict[str, float]:
        """A layer has one kernel forward; what it has backward shares the work of the backward pass."""
        sizes = self.sizes
        product = 2.0 * sizes["batch"] * sizes["length"] ** 2 * sizes["width"]
        calls = [one for one, _ in self._calls()]
        forward = calls[: sizes["layers"]]
        backward = calls[sizes["layers"] :]
        found = {one.name: product * _PRODUCTS["forward"] for one in forward}
        share = product * _PRODUCTS["backward"] * sizes["layers"] / len(backward) if backward else 0.0
        return found | {one.name: share for one in backward}

    def _fill(self, operator: int | None) -> float:
        """The head dimension against the side of the matrix unit, as for TorchTPU's kernels."""
        del operator
        return min(1.0, self.sizes["width"] // self.sizes["heads"] / self.chip.mxu)
