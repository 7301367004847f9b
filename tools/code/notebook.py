"""A notebook's code cells as one Python text, and edited cells back into the notebook's own JSON, byte for byte."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tools.code.source import SourceFile, Unreadable

_BORDER = "\n#\x1e\n"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

_PYTHON_CELL = re.compile(r"%%(time|timeit|capture|prun|memit|mprun|python3?)\b")
"""Cell magics whose cell is Python all the same."""
_CELL_MAGIC = re.compile(r"\s*%%[A-Za-z]")
_LINE_MAGIC = re.compile(r"^[ \t]*(?:%[A-Za-z_]|!|\?)")
_ASSIGNED_MAGIC = re.compile(r"^[ \t]*[A-Za-z_][\w., \t]*=[ \t]*(?=!|%[A-Za-z_])")
_HELP = re.compile(r"^[ \t]*[%\w.*]+\?{1,2}[ \t]*$")


@dataclass(frozen=True)
class _Cell:
    """A code cell: where its ``source`` value lies in the JSON, and the text it stands for."""

    start: int
    end: int
    text: str


class Notebook(SourceFile):
    """The code cells of an ``.ipynb`` file, joined; ``text`` has IPython's magics masked at equal length.

    Cells share one text because a name imported in one cell is used in the next. Cells in another language (``%%bash``)
    and lines of magics are not examined, and survive.

    Raises:
        Unreadable: if the file is not a Python notebook.
    """

    def __init__(self, relative: str, data: bytes) -> None:
        super().__init__(relative, data, python=False)
        self._json = self.text
        try:
            document = json.loads(self._json)
            self._cells = list(_code_cells(document, self._json))
            language = _language(document)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Unreadable(f"not a notebook (format 4): {error!r}") from error
        if language != "python":
            raise Unreadable(f"a notebook in {language}")
        self.raw = _BORDER.join(cell.text for cell in self._cells)
        if self.raw.count(_BORDER) != max(len(self._cells) - 1, 0):
            raise Unreadable("a cell holds the character that separates cells here (U+001E)")
        self.text = _BORDER.join(_masked(cell.text) for cell in self._cells)

    def with_text(self, text: str) -> bytes:
        """The notebook with the joined cells replaced; cells that did not change keep their exact JSON.

        Raises:
            Unreadable: if the text has lost or gained a border between cells.
        """
        parts = text.split(_BORDER) if self._cells else []
        if len(parts) != len(self._cells):
            raise Unreadable("an edit went across cells")
        out, position = [], 0
        for cell, new in zip(self._cells, parts, strict=True):
            if new != cell.text:
                out += [self._json[position : cell.start], self._value(cell, new)]
                position = cell.end
        out.append(self._json[position:])
        return super().with_text("".join(out))

    def _value(self, cell: _Cell, text: str) -> str:
        """The JSON of a cell's new source: a list or a string as before, lines that stay in their own spelling."""
        old = self._json[cell.start : cell.end]
        if not old.startswith("["):
            return self._dump(text)
        literals = [(m.start(), m.end()) for m in _STRING.finditer(old)]
        known = {json.loads(old[a:b]): old[a:b] for a, b in literals}
        lines = [known.get(line) or self._dump(line) for line in text.splitlines(keepends=True)] or ['""']
        opening = re.match(r"\[\s*", old)
        closing = re.search(r"\s*\]$", old)
        assert opening is not None and closing is not None
        between = old[literals[0][1] : literals[1][0]] if len(literals) > 1 else "," + (opening.group()[1:] or " ")
        return opening.group() + between.join(lines) + closing.group()

    def _dump(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._json.isascii())

    def cell(self, offset: int) -> tuple[int, int]:
        """Code cell (from 1) that holds a character offset, and the line within it (from 1)."""
        before = self.text[:offset]
        index = before.count(_BORDER)
        return index + 1, before.count("\n", self._cell_start(before)) + 1

    def file_line(self, offset: int) -> int:
        """Line of the notebook's JSON that holds a character offset."""
        before = self.text[:offset]
        cell = self._cells[before.count(_BORDER)]
        within = offset - self._cell_start(before)
        place = cell.start
        for match in _STRING.finditer(self._json, cell.start, cell.end):
            place = match.start()
            within -= len(json.loads(match.group()))
            if within < 0:
                break
        return self._json.count("\n", 0, place) + 1

    @staticmethod
    def _cell_start(before: str) -> int:
        border = before.rfind(_BORDER)
        return border + len(_BORDER) if border >= 0 else 0

    @property
    def editable(self) -> str:
        """The joined cells as written, magics included; edits found in ``text`` apply to it."""
        return self.raw


def _language(document: dict[str, dict[str, dict[str, str]]]) -> str:
    metadata = document.get("metadata", {})
    named = metadata.get("language_info", {}).get("name") or metadata.get("kernelspec", {}).get("language") or "python"
    return "python" if named.lower() in ("python", "python3", "ipython") else named


def _code_cells(document: dict[str, list[dict[str, object]]], text: str) -> list[_Cell]:
    found = []
    for cell, (start, end) in zip(document["cells"], _source_spans(text), strict=True):
        source = cell["source"]
        if cell["cell_type"] == "code":
            found.append(_Cell(start, end, "".join(source) if isinstance(source, list) else str(source)))
    return found


def _masked(cell: str) -> str:
    """The cell with everything that is not Python made a comment or a constant, at equal length."""
    lines = cell.split("\n")
    if _CELL_MAGIC.match(cell):
        if not _PYTHON_CELL.match(cell.lstrip()):
            return "\n".join("#" + line[1:] if line else line for line in lines)
        head = next(number for number, line in enumerate(lines) if line.strip())
        lines[head] = "#" + lines[head][1:]
    continued = False
    for number, line in enumerate(lines):
        if continued:
            lines[number] = "#" + line[1:] if line else line
        else:
            lines[number] = _masked_line(line)
        continued = (continued or lines[number] != line) and line.endswith("\\")
    return "\n".join(lines)


def _masked_line(line: str) -> str:
    """A magic as the constant 0 and a comment, so that a block of nothing but magics still has a body."""
    assigned = _ASSIGNED_MAGIC.match(line)
    if assigned:
        start = assigned.end()
    elif _LINE_MAGIC.match(line) or _HELP.match(line):
        start = len(line) - len(line.lstrip())
    else:
        return line
    return line[:start] + "0#"[: len(line) - start] + line[start + 2 :]


def _source_spans(text: str) -> list[tuple[int, int]]:
    """Spans of the ``source`` values of the entries of the top-level ``cells``, in order."""
    spans: list[tuple[int, int]] = []
    path: list[str | None] = []
    key: str | None = None
    previous = ""
    start = -1
    for match in _TOKEN.finditer(text):
        token = match.group()
        wanted = path == [None, "cells", None] and key == "source" and previous == ":"
        if wanted and token not in "[{":
            spans.append(match.span())
        if token in "[{":
            if wanted:
                start = match.start()
            path.append(key)
            key = None
        elif token in "]}":
            key = path.pop()
            if path == [None, "cells", None] and key == "source" and start >= 0:
                spans.append((start, match.end()))
                start = -1
        elif token == ":" and previous.startswith('"'):
            key = json.loads(previous)
        elif token == ",":
            key = None
        previous = token
    return spans
