"""Shapes of compiled programs: elements, bytes, and the bytes that tiling makes of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

WIDTHS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32,
    "s64": 64, "u64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128, "f8e4m3fn": 8,
    "f8e5m2": 8, "f8e4m3b11fnuz": 8, "f8e4m3": 8, "f4e2m1fn": 4,
}  # fmt: skip
HBM = 0

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([\d,<=]*)\](?:\{([^{}]*)\})?")
_TILE = re.compile(r"T\((\d+(?:,\d+)*)\)")
_SPACE = re.compile(r"S\((\d+)\)")


@dataclass(frozen=True)
class Shape:
    """An array.

    Attributes:
        dtype: As HLO calls it.
        dims: Its sizes.
        order: Dimensions from minor to major.
        tile: The outer tile, minor last; empty without one.
        space: Memory space; 0 is HBM, others lie on the core.
    """

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...] = ()
    tile: tuple[int, ...] = ()
    space: int = HBM

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> float:
        """Bytes of its elements."""
        return self.elements * WIDTHS[self.dtype] / 8

    @property
    def padded_bytes(self) -> float:
        """Bytes it takes in memory, where whole tiles are kept."""
        if not self.tile or not self.order:
            return self.bytes
        physical = [self.dims[axis] for axis in reversed(self.order)]
        for offset, side in enumerate(reversed(self.tile), 1):
            if offset <= len(physical):
                physical[-offset] = math.ceil(physical[-offset] / side) * side
        return math.prod(physical) * WIDTHS[self.dtype] / 8


@lru_cache(maxsize=65536)
def parse_shapes(text: str) -> tuple[Shape, ...]:
    """Returns the arrays in the text of a type, in order; tuples are flattened."""
    found = []
    for match in _ARRAY.finditer(text):
        dtype, sizes, layout = match.groups()
        if dtype not in WIDTHS:
            continue
        dims = tuple(int(size.lstrip("<=")) for size in sizes.split(",") if size)
        order, _, rest = (layout or "").partition(":")
        tile, space = _TILE.search(rest), _SPACE.search(rest)
        found.append(
            Shape(
                dtype,
                dims,
                tuple(int(axis) for axis in order.split(",") if axis.isdigit()),
                tuple(map(int, tile[1].split(","))) if tile else (),
                int(space[1]) if space else HBM,
            )
        )
    return tuple(found)
