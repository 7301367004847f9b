"""A long Python text without what holds nothing of interest, for quick parsing."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cache

_AT_MARGIN = re.compile(r"\n(?=[^\s)\]}])")
_OPENING = re.compile(r"\n([ \t]+)((?:async[ \t]+def|def|class)[ \t]+\w+)")
_DEFINITION = re.compile(r"()((?:async[ \t]+def|def|class)[ \t]+\w+)")
_STAYS = re.compile(
    r"(?:import|from|if|elif|else|try|except|finally|for|while|with|async|match|type)\b|[.\d]|\w?\w?[\"']"
)
"""Begins a statement at the margin that is never left out; with a quote, it may be the module's docstring."""
_IMPORTS = re.compile(r"[ \t]*(?:import|from)[ \t]")
_IMPORT = re.compile(r"[ \t]+((?:import|from)[ \t]+[^\n;\\(]*(?:\([^)]*\))?[ \t]*)(?=\n|\Z)")
_HEADER = re.compile(r"[\[\](){}:]|\"[^\"\n]*\"|'[^'\n]*'")
_MATTERS = re.compile(r"[dD][eE][vV]|[gG][pP][uU]|[cC][uU][dD][aA]")
"""In a function's parameters: a rule may ask whether one of them is a device."""


def carve(text: str, code: str, starts: Sequence[int], lines: Sequence[int], classes: Sequence[int] = ()) -> str:
    """``text`` with uninteresting code left out; every line and column of what is left stays where it was.

    A function or class without a line of interest keeps its name, its first and last line and its imports of torch.
    Where no line of interest is at module level, other simple statements there go too.

    It goes by indentation and may yield what is not Python any more where that misleads (a bracket that goes back to
    the margin); the caller takes the whole text then. A definition, which cannot start inside a bracket, is left out up
    to where it seems to end, so a bracket that stays open in it leaves its other half behind, which does not parse.

    Args:
        text: Python source whose lines end with a line feed alone.
        code: see ``tools.code.strings``.
        starts: offset of each line.
        lines: sorted numbers (from 1) of the lines that must stay, with the function that encloses them.
        classes: likewise, with the whole class that encloses them.
    """
    places = [starts[line - 1] for line in lines]
    return _Carving(text, code, places, [starts[line - 1] for line in classes]).result()


class _Carving:
    """See ``carve``; ``places`` and ``classes`` are where the lines start."""

    def __init__(self, text: str, code: str, places: Sequence[int], classes: Sequence[int]) -> None:
        self.text = text
        self.code = code
        self.places = places
        self.classes = classes
        self.torch = sorted((*_all(code, "import torch"), *_all(code, "from torch")))
        self.gone: list[tuple[int, int, str]] = []
        """What is left out, as (start, end, what stands there instead)."""

    def result(self) -> str:
        rest = list(self._definitions())
        if not any(matters for _, _, matters in rest):
            self._statements([(start, end) for start, end, _ in rest])
        position, pieces = 0, []
        for start, end, instead in sorted(self.gone):
            pieces += [self.text[position:start], instead]
            position = end
        return "".join([*pieces, self.text[position:]])

    def _definitions(self) -> Iterator[tuple[int, int, bool]]:
        """Leaves out definitions; yields start and end of what else is at module level, and whether it matters."""
        code, decorated = self.code, -1
        begins = [*([0] if code[:1].strip() else []), *(match.end() for match in _AT_MARGIN.finditer(code))]
        for start, following in zip(begins, [*begins[1:], len(code) + 1], strict=True):
            if code[start] == "@":
                decorated = start if decorated < 0 else decorated
            elif match := _DEFINITION.match(code, start):
                self._definition(match, start if decorated < 0 else decorated, following - 1)
                decorated = -1
            else:
                yield start, following - 1, self._statement(start, following - 1)

    def _definition(self, match: re.Match[str], start: int, end: int) -> None:
        if not _within(self.places, start, end):
            self._leave_out(match, start, end)
        elif match.group(2).startswith("class") and not _within(self.classes, start, end):
            self._inside(match.end(), end)

    def _inside(self, start: int, end: int) -> list[tuple[int, int]]:
        """Leaves out definitions inside another statement; returns the spans of all that are in no other there."""
        spans, position = list[tuple[int, int]](), start
        for match in _OPENING.finditer(self.code, start, end):
            if match.start() >= position:
                spans.append((self._decorators(match, position), self._end(match, end)))
                self._definition(match, *spans[-1])
                position = spans[-1][1]
        return spans

    def _statement(self, start: int, end: int) -> bool:
        """Leaves out definitions in a statement; whether a line of interest is elsewhere in it, and in no import."""
        code, spans = self.code, self._inside(start, end)
        index = bisect.bisect_left(self.places, start)
        if _IMPORTS.match(code, start):
            return False
        return any(
            not _IMPORTS.match(code, place) and not any(begin <= place <= stop for begin, stop in spans)
            for place in self.places[index : bisect.bisect_right(self.places, end)]
        )

    def _decorators(self, match: re.Match[str], after: int) -> int:
        """Where the decorators of a definition start, or its line."""
        code, first = self.code, match.start() + 1
        margin = match.group(1)
        while True:
            place = code.rfind(f"\n{margin}@", after, first - 1)
            if place < 0:
                return first
            following = _not_deeper(len(margin)).search(code, place + 1)
            if following is None or following.start() != first - 1:
                return first
            first = place + 1

    def _end(self, match: re.Match[str], end: int) -> int:
        """Offset of the line end before the next statement that is not deeper than a definition."""
        for found in _not_deeper(len(match.group(1))).finditer(self.code, match.end(), end):
            if self.code[found.start() - 1] != "\\":
                return found.start()
        return end

    def _leave_out(self, match: re.Match[str], start: int, end: int) -> None:
        """Puts a stub in a definition's place, without its decorators."""
        code, margin = self.code, match.group(1)
        head = self._head(match, end)
        end = head + len(code[head:end].rstrip())
        pieces, position = ["" if head > match.end() else "():"], head
        imports = self._imports(head, end)
        if imports is None:
            return
        for begin, stop in imports:
            pieces += ["\n" * self.text.count("\n", position, begin), margin, " ", self.text[begin:stop]]
            position = stop
        rest = self.text.count("\n", position, end)
        if rest or not imports:
            pieces += ["\n" * rest, margin if rest else "", " 0"]
        first = match.start(1)
        if start < first:
            self.gone.append((start, first, "\n" * self.text.count("\n", start, first)))
        self.gone.append((head, end, "".join(pieces)))

    def _head(self, match: re.Match[str], end: int) -> int:
        """The end of what stays of a definition's first lines: its name, or its parameters where they matter."""
        code, start = self.code, match.end()
        if match.group(1) or not match.group(2).startswith("def"):
            return start
        line = code[start : code.find("\n", start)].rstrip()
        if line.endswith(":") and line.count("(") == line.count(")"):
            return start + len(line) if _MATTERS.search(line) else start
        depth = 0
        for token in _HEADER.finditer(code, start, end):
            depth += (token.group() in "([{") - (token.group() in ")]}")
            if token.group() == ":" and not depth:
                return token.end() if _MATTERS.search(code, start, token.end()) else start
        return start

    def _imports(self, start: int, end: int) -> list[tuple[int, int]] | None:
        """Spans of the statements that import torch, which count for the whole file; None where one is not alone."""
        code, spans = self.code, list[tuple[int, int]]()
        for place in self.torch[bisect.bisect_left(self.torch, start) : bisect.bisect_left(self.torch, end)]:
            if spans and place < spans[-1][1]:
                continue
            line = code.rfind("\n", 0, place)
            statement = _IMPORT.match(code, line + 1, end) if line >= start else None
            if statement is None:
                return None
            spans.append(statement.span(1))
        return spans

    def _statements(self, rest: Sequence[tuple[int, int]]) -> None:
        """Leaves out simple statements at module level, each run of them for one ``pass``."""
        for start, end in rest:
            if start and not _STAYS.match(self.code, start) and self.code.find("import", start, end) < 0:
                self.gone.append((start, end, "pass" + "\n" * self.text.count("\n", start, end)))


def _all(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)


def _within(places: Sequence[int], start: int, end: int) -> bool:
    """Whether one of the sorted places is in a span."""
    index = bisect.bisect_left(places, start)
    return index < len(places) and places[index] <= end


@cache
def _not_deeper(indent: int) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]{{0,{indent}}}[^\s)\]}}]")
