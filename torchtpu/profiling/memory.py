"""Follows the buffers of a scheduled program: how much memory is held when, and by what."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchtpu.hlo.parse import Instruction, Module
from torchtpu.hlo.shapes import HBM

_INDEX = re.compile(r"index=(\d+)")
_SAME = frozenset(["bitcast", "optimization-barrier", "opt-barrier", "copy-done", "while", "add-dependency"])

Buffer = tuple[str, int]


@dataclass(frozen=True)
class Held:
    """A buffer.

    Attributes:
        instruction: What writes it.
        index: Which of its results it is.
        bytes: Whole tiles.
        first: Position in the schedule where it is written.
        last: Position of its last use.
    """

    instruction: str
    index: int
    bytes: float
    first: int
    last: int


class Memory:
    """Buffers in HBM over the schedule of a program's entry.

    Arguments are held throughout. A loop's own buffers and those reused in place are not seen, so the
    compiler's own figure of the peak is the one to go by where there is one.
    """

    def __init__(self, module: Module) -> None:
        self.lines = module.computations.get(module.entry, [])
        self.module = module
        self._buffers: dict[str, tuple[Buffer, ...]] = {}
        self.arguments = sum(
            shape.padded_bytes for one in self.lines if one.opcode == "parameter" for shape in one.shapes
        )
        self.held = self._follow()

    def _of(self, one: Instruction) -> tuple[Buffer, ...]:
        operands = [self._buffers.get(name, ()) for name in one.operands]
        if one.opcode == "tuple":
            return tuple(buffer for group in operands for buffer in group)
        if one.opcode == "get-tuple-element" and operands:
            match = _INDEX.search(one.text)
            index = int(match[1]) if match else 0
            return operands[0][index : index + 1]
        if one.opcode == "copy-start" and operands:
            # Its tuple is the copy, the source, and a mark.
            return ((one.name, 0), *operands[0][:1], (one.name, 2))
        if one.opcode in _SAME and operands:
            return operands[0][:1] if one.opcode == "copy-done" else operands[0]
        return tuple((one.name, index) for index in range(len(one.shapes)))

    def _follow(self) -> list[Held]:
        first: dict[Buffer, int] = {}
        last: dict[Buffer, int] = {}
        sizes: dict[Buffer, float] = {}
        outputs: set[Buffer] = set()
        for position, one in enumerate(self.lines):
            for name in one.operands:
                for buffer in self._buffers.get(name, ()):
                    last[buffer] = position
            mine = self._buffers[one.name] = self._of(one)
            if one.root:
                outputs.update(mine)
            for buffer in mine:
                if buffer[0] == one.name and one.opcode not in ("parameter", "constant"):
                    shape = one.shapes[buffer[1]]
                    if shape.space == HBM:
                        first[buffer] = last[buffer] = position
                        sizes[buffer] = shape.padded_bytes
        end = len(self.lines)
        return [
            Held(*buffer, sizes[buffer], start, end if buffer in outputs else last[buffer])
            for buffer, start in first.items()
        ]

    def timeline(self) -> list[float]:
        """Bytes held at each position of the schedule, arguments included."""
        change = [0.0] * (len(self.lines) + 2)
        for buffer in self.held:
            change[buffer.first] += buffer.bytes
            change[buffer.last + 1] -= buffer.bytes
        found, now = [], self.arguments
        for step in change[: len(self.lines)]:
            now += step
            found.append(now)
        return found

    def largest(self, count: int = 20) -> list[Held]:
        """The largest buffers held when most is held."""
        line = self.timeline()
        if not line:
            return []
        peak = max(range(len(line)), key=line.__getitem__)
        there = [buffer for buffer in self.held if buffer.first <= peak <= buffer.last]
        return sorted(there, key=lambda buffer: -buffer.bytes)[:count]
