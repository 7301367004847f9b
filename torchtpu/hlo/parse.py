"""Reads the text of a compiled, scheduled HLO module, without the library that may be older than its compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from torchtpu.hlo.shapes import Shape, parse_shapes

_HEAD = re.compile(r"(ENTRY )?%?([\w.<>-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.<>-]+) = (.*)$")
_OPCODE = re.compile(r" ([a-z][a-z0-9\-]*)\(")
_OPERAND = re.compile(r"%([\w.<>-]+)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_CALLED = re.compile(r"(?:calls|to_apply|body|condition|called_computations)=\{?%?([\w.<>-]+)")
_BODY, _CONDITION = re.compile(r"body=%?([\w.<>-]+)"), re.compile(r"condition=%?([\w.<>-]+)")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_UNKNOWN = 2**62
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
_TABLE_ROW = re.compile(r'(\d+) (?:"(.*)"|\{(.*)\})$')
_FIELD = re.compile(r"(\w+)=(\d+)")


@dataclass(frozen=True)
class Instruction:
    """One line of a computation.

    Attributes:
        name: Its name, unique in the module.
        opcode: Such as ``fusion``.
        shapes: The arrays it yields.
        operands: Names of what it takes.
        text: Everything after the equals sign.
    """

    name: str
    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[str, ...]
    text: str
    root: bool = False

    def _number(self, pattern: re.Pattern[str]) -> int | None:
        match = pattern.search(self.text)
        return int(match[1]) if match else None

    @cached_property
    def cycles(self) -> int | None:
        """Cycles by the compiler's window model, where it has some."""
        cycles = self._number(_CYCLES)
        # The largest number says that nothing was estimated.
        return cycles if cycles is not None and cycles < _UNKNOWN else None

    @cached_property
    def frame(self) -> int | None:
        """Number of the stack frame it comes from."""
        return self._number(_FRAME) or None

    @cached_property
    def trips(self) -> int | None:
        """How often a loop turns, where that is known."""
        return self._number(_TRIPS)

    @cached_property
    def op_name(self) -> str:
        """The operation of the program it comes from."""
        match = _OP_NAME.search(self.text)
        return match[1] if match else ""

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Names of the computations it calls."""
        return tuple(_CALLED.findall(self.text))

    @cached_property
    def target(self) -> str:
        """What a custom call calls."""
        match = _TARGET.search(self.text)
        return match[1] if match else ""

    @cached_property
    def body(self) -> str | None:
        """Computation of a loop's body."""
        match = _BODY.search(self.text)
        return match[1] if match else None

    @property
    def kind(self) -> str:
        """Kind of a fusion, such as ``kOutput``."""
        match = re.search(r"kind=(\w+)", self.text)
        return match[1] if match else ""


@dataclass
class Module:
    """A compiled program.

    Attributes:
        computations: Instructions of each computation, in the order of the schedule.
        entry: Name of the one that runs first.
        functions: Name of the function of each stack frame.
    """

    computations: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""
    functions: dict[int, str] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Instruction]:
        """Every instruction by its name."""
        return {one.name: one for lines in self.computations.values() for one in lines}


def _operands(text: str, start: int) -> tuple[str, ...]:
    depth = 0
    for position in range(start, len(text)):
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            depth -= 1
            if depth == 0:
                return tuple(_OPERAND.findall(text, start, position))
    return ()


def _instruction(line: str) -> Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    root, name, text = match.groups()
    opcode = _OPCODE.search(text)
    if opcode is None:
        return None
    shapes = parse_shapes(text[: opcode.start()])
    return Instruction(name, opcode[1], shapes, _operands(text, opcode.end() - 1), text, bool(root))


def _frames(tables: dict[str, dict[int, str]]) -> dict[int, str]:
    names = {}
    for frame, row in tables.get("StackFrames", {}).items():
        location = dict(_FIELD.findall(row)).get("file_location_id")
        place = tables.get("FileLocations", {}).get(int(location or 0), "")
        function = dict(_FIELD.findall(place)).get("function_name_id")
        names[frame] = tables.get("FunctionNames", {}).get(int(function or 0), "")
    return names


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def parse(text: str) -> Module:
    """Returns a module from its text."""
    module = Module()
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] | None = None
    current: list[Instruction] | None = None
    for line in _lines(text):
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = tables.setdefault(line, {})
        elif table is not None and (row := _TABLE_ROW.match(line)):
            table[int(row[1])] = row[2] if row[2] is not None else row[3]
        elif line.startswith(" ") and current is not None:
            instruction = _instruction(line)
            if instruction is not None:
                current.append(instruction)
        elif head := _HEAD.match(line):
            table, current = None, module.computations.setdefault(head[2], [])
            if head[1]:
                module.entry = head[2]
        elif line.startswith("}"):
            current = None
    module.functions = _frames(tables)
    return module
