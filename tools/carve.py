"""A long Python text without what holds nothing of interest, for quick parsing."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from tools.strings import Strings

_OPENING = re.compile(r"\n([ \t]*)((?:async[ \t]+def|def|class)[ \t]+\w+)")
_AT_MARGIN = re.compile(r"\n(?=[^\s#)\]}])")
_STAYS = re.compile(
    r"(?:import|from|if|elif|else|try|except|finally|for|while|with|async|def|class|match|type)\b|[@.\d]|\w?\w?[\"']"
)
"""Begins a statement at the margin that is never left out; with a quote, it may be the module's docstring."""
_IMPORTS = re.compile(r"(?:import|from)[ \t]")
_TORCH = re.compile(r"(?:import|from) torch")
_IMPORT = re.compile(r"[ \t]+((?:import|from)[ \t]+[^\n;\\(]*(?:\([^#)]*\))?[ \t]*(?:#[^\n]*)?)(?=\n|\Z)")
_HEADER = re.compile(r"[\[\](){}:]|\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")
_MATTERS = re.compile(r"(?i)dev|gpu|cuda")
"""In a function's parameters: a rule may ask whether one of them is a device."""


def carve(
    text: str, starts: Sequence[int], lines: Sequence[int], classes: Sequence[int] = (), strings: Strings | None = None
) -> str:
    """``text`` with uninteresting code left out; every line and column of what is left stays where it was.

    A function or class without a line of interest keeps its name, its first and last line and its imports of torch.
    Where no line of interest is at module level, other simple statements there go too.

    It goes by indentation and may yield what is not Python any more where that misleads (a bracket that goes back to
    the margin); the caller takes the whole text then. A definition, which cannot start inside a bracket, is left out up
    to where it seems to end, so a bracket that stays open in it leaves its other half behind, which does not parse.

    Args:
        text: Python source whose lines end with a line feed alone.
        starts: offset of each line.
        lines: sorted numbers (from 1) of the lines that must stay, with the function that encloses them.
        classes: likewise, with the whole class that encloses them.
        strings: the text's long strings.
    """
    return _Carving(text, starts, lines, classes, strings or Strings(text)).result()


@dataclass
class _Carving:
    text: str
    starts: Sequence[int]
    lines: Sequence[int]
    classes: Sequence[int]
    strings: Strings
    gone: list[tuple[int, int, str]] = field(default_factory=list)
    """What is left out, as (start, end, what stands there instead)."""

    def result(self) -> str:
        outermost = self._definitions()
        if not any(self._is_code(line) for line in self._outside(outermost)):
            self._statements(outermost)
            self.gone.sort()
        position, pieces = 0, []
        for start, end, instead in self.gone:
            pieces += [self.text[position:start], instead]
            position = end
        return "".join([*pieces, self.text[position:]])

    def _definitions(self) -> list[tuple[int, int]]:
        """Leaves out definitions; returns the spans of all outermost ones."""
        text, position = self.text, 0
        outermost: list[tuple[int, int]] = []
        for match in _OPENING.finditer(text):
            if match.start() < position or self.strings.around(match.start()) is not None:
                continue
            start = self._decorators(match)
            end = self._end(match.end(), len(match.group(1)))
            if not outermost or start > outermost[-1][1]:
                outermost.append((start, end))
            if not self._touched(self.lines, start, end):
                self._leave_out(match, start, end)
                position = end
            elif not match.group(2).startswith("class") or self._touched(self.classes, start, end):
                position = end
        return outermost

    def _decorators(self, match: re.Match[str]) -> int:
        """Where the decorators of a definition start, or itself."""
        text, margin = self.text, match.group(1)
        first = line = match.start() + 1
        while line:
            line = text.rfind("\n", 0, line - 1) + 1
            begin = text[line : line + len(margin) + 1]
            if begin == margin + "@":
                first = line
            elif not begin.startswith(margin) or begin[len(margin) :] not in (" ", "\t", ")", "]", "}", "#"):
                break
        return first

    def _touched(self, lines: Sequence[int], start: int, end: int) -> bool:
        index = bisect.bisect_left(lines, bisect.bisect_right(self.starts, start))
        return index < len(lines) and lines[index] <= bisect.bisect_right(self.starts, end)

    def _end(self, start: int, indent: int) -> int:
        """Offset of the line end before the next statement that is not deeper than ``indent``."""
        text = self.text
        for match in _not_deeper(indent).finditer(text, start):
            place = match.start()
            if text[place - 1] != "\\" and self.strings.around(place) is None:
                return place
        return len(text)

    def _leave_out(self, match: re.Match[str], start: int, end: int) -> None:
        """Puts a stub in a definition's place, without its decorators."""
        text, margin = self.text, match.group(1)
        head = self._head(match, end)
        end = _last_code(text, head, end)
        pieces, position = ["" if head > match.end() else "():"], head
        imports = self._imports(head, end)
        if imports is None:
            return
        for begin, stop in imports:
            pieces += ["\n" * text.count("\n", position, begin), margin, " ", text[begin:stop]]
            position = stop
        rest = text.count("\n", position, end)
        if rest or not imports:
            pieces += ["\n" * rest, margin if rest else "", " 0"]
        if start <= match.start():
            self.gone.append((start, match.start(), "\n" * text.count("\n", start, match.start())))
        self.gone.append((head, end, "".join(pieces)))

    def _head(self, match: re.Match[str], end: int) -> int:
        """The end of what stays of a definition's first lines: its name, or its parameters where they matter."""
        text, start = self.text, match.end()
        if match.group(1) or not match.group(2).startswith("def") or not _MATTERS.search(text, start, end):
            return start
        depth = 0
        for token in _HEADER.finditer(text, start, end):
            depth += (token.group() in "([{") - (token.group() in ")]}")
            if token.group() == ":" and not depth:
                return token.end() if _MATTERS.search(text, start, token.end()) else start
        return start

    def _imports(self, start: int, end: int) -> list[tuple[int, int]] | None:
        """Spans of the statements that import torch, which count for the whole file; None where one is not alone."""
        text, spans = self.text, list[tuple[int, int]]()
        for found in _TORCH.finditer(text, start, end):
            if spans and found.start() < spans[-1][1]:
                continue
            if self.strings.around(found.start()) is not None or self.strings.in_comment(found.start()):
                continue
            line = text.rfind("\n", 0, found.start())
            statement = _IMPORT.match(text, line + 1, end) if line >= start else None
            if statement is None:
                return None
            spans.append(statement.span(1))
        return spans

    def _outside(self, outermost: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Lines of interest in no definition."""
        begins = [start for start, _ in outermost]
        for line in self.lines:
            place = self.starts[line - 1]
            index = bisect.bisect_right(begins, place) - 1
            if index < 0 or place > outermost[index][1]:
                yield line

    def _is_code(self, line: int) -> bool:
        """Whether a line at module level is in another statement than an import."""
        text, start = self.text, self.starts[line - 1]
        while start and (text[start] in " \t\n#)]}" or self.strings.around(start) is not None):
            start = text.rfind("\n", 0, start - 1) + 1
        return not _IMPORTS.match(text, start) and not _IMPORTS.match(text[self.starts[line - 1] :][:80].lstrip())

    def _statements(self, outermost: Sequence[tuple[int, int]]) -> None:
        """Leaves out simple statements at module level, each run of them for one ``pass``."""
        position = 0
        for start, end in [*outermost, (len(self.text), len(self.text))]:
            self._run(position, start)
            position = end

    def _run(self, start: int, end: int) -> None:
        text, begin = self.text, None
        for match in _AT_MARGIN.finditer(text, start, end):
            place = match.end()
            if self.strings.around(place) is not None:
                continue
            stays = _STAYS.match(text, place) is not None or place == 0
            if stays and begin is not None:
                self._blank(begin, match.start())
                begin = None
            elif not stays and begin is None:
                begin = place
        if begin is not None:
            self._blank(begin, end)

    def _blank(self, start: int, end: int) -> None:
        if self.text.find("import", start, end) < 0:
            self.gone.append((start, end, "pass" + "\n" * self.text.count("\n", start, end)))


@cache
def _not_deeper(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,{indent}}}[^\s#)\]}}]")


def _last_code(text: str, start: int, end: int) -> int:
    """``end`` moved before trailing blank lines and comments, so that the block keeps its last line."""
    while True:
        end = start + len(text[start:end].rstrip())
        line = text.rfind("\n", start, end) + 1
        if line <= start or not text[line:end].lstrip().startswith("#"):
            return end
        end = line - 1
