"""A long Python text without the bodies of functions and classes that hold nothing of interest, for quick parsing."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cache

_STRING = (
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r"|#[^\n]*"
)
_STRINGS = re.compile(_STRING, re.DOTALL)
_HEADER = re.compile(_STRING + r"|[\[\](){}:]", re.DOTALL)
_OPENING = re.compile(r"^([ \t]*)(?:(?:async[ \t]+)?def|class)[ \t]", re.MULTILINE)
_ONLY_COMMENT = re.compile(r"[ \t]*(?:#[^\n]*)?(?=\n)")


def carve(text: str, starts: Sequence[int], lines: Sequence[int]) -> str:
    """``text`` with uninteresting bodies emptied; every line and column of what is left stays where it was.

    It is a guess from indentation and may not be Python any more where that misleads (a string or bracket that goes
    back to the margin). The caller parses the result and takes the whole text where that fails.

    Args:
        text: Python source whose lines end with a line feed alone.
        starts: offset of each line.
        lines: sorted numbers (from 1) of the lines that must stay, with all that encloses them.
    """
    inside = _lines_inside_strings(text, starts)
    pieces: list[str] = []
    position = 0
    for match in _OPENING.finditer(text):
        if match.start() < position:
            continue
        first = bisect.bisect_right(starts, match.start())
        colon = None if first in inside else _colon(text, match.end())
        if colon is None or not (rest := _ONLY_COMMENT.match(text, colon + 1)):
            continue
        end = _end_of_block(text, rest.end(), len(match.group(1)), starts, inside)
        if end > rest.end() and not _touched(lines, first, bisect.bisect_right(starts, end)):
            end = _last_code(text, rest.end(), end)
            pieces += [text[position : colon + 1], "\n" * text.count("\n", colon, end), match.group(1), " 0"]
            position = end
    return "".join([*pieces, text[position:]])


def _touched(lines: Sequence[int], first: int, last: int) -> bool:
    index = bisect.bisect_left(lines, first)
    return index < len(lines) and lines[index] <= last


def _lines_inside_strings(text: str, starts: Sequence[int]) -> frozenset[int]:
    """Numbers of the lines whose first character is part of a string."""
    inside: list[int] = []
    for match in _STRINGS.finditer(text):
        start, end = match.span()
        if text.find("\n", start, end) >= 0:
            inside += range(bisect.bisect_right(starts, start) + 1, bisect.bisect_right(starts, end) + 1)
    return frozenset(inside)


def _colon(text: str, start: int) -> int | None:
    """Offset of the colon that ends the header of a definition."""
    depth = 0
    for match in _HEADER.finditer(text, start):
        token = match.group()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == ":" and not depth:
            return match.start()
    return None


@cache
def _not_deeper(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,{indent}}}[^\s#]")


def _end_of_block(text: str, start: int, indent: int, starts: Sequence[int], inside: frozenset[int]) -> int:
    """Offset of the line end before the next statement that is not deeper than ``indent``."""
    for match in _candidates(_not_deeper(indent), text, start):
        continued = text[match - 1] == "\\"
        if not continued and bisect.bisect_right(starts, match + 1) not in inside:
            return match
    return len(text)


def _last_code(text: str, start: int, end: int) -> int:
    """``end`` moved before trailing blank lines and comments, so that the block keeps its last line."""
    while True:
        end = start + len(text[start:end].rstrip())
        line = text.rfind("\n", start, end) + 1
        if line <= start or not text[line:end].lstrip().startswith("#"):
            return end
        end = line - 1


def _candidates(pattern: re.Pattern[str], text: str, start: int) -> Iterator[int]:
    return (match.start() for match in pattern.finditer(text, start))
