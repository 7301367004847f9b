"""A notebook's code cells as one Python text, and edited cells back into the notebook's own JSON, byte for byte."""

from __future__ import annotations

import json
import re

from tools.source import SourceFile, Unreadable

_BORDER = "\n#\x1e\n"
_MAGIC = re.compile(r"^([ \t]*)[%!?]", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class Notebook(SourceFile):
    """The code cells of an ``.ipynb`` file, joined; ``text`` has IPython's magics turned into comments of equal length.

    Cells share one text because a name imported in one cell is used in the next.

    Raises:
        Unreadable: if the file is not a notebook.
    """

    def __init__(self, relative: str, data: bytes) -> None:
        super().__init__(relative, data, python=False)
        self._json = self.text
        try:
            document = json.loads(self._json)
            cells = document["cells"]
            self._spans = [
                (span, "".join(source) if isinstance(source := cell["source"], list) else str(source))
                for cell, span in zip(cells, _source_spans(self._json), strict=True)
                if cell["cell_type"] == "code"
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise Unreadable(f"not a notebook (format 4): {error}") from error
        self.raw = _BORDER.join(text for _, text in self._spans)
        self.text = _MAGIC.sub(r"\1#", self.raw)

    def with_text(self, text: str) -> bytes:
        """The notebook with the joined cells replaced; cells that did not change keep their exact JSON."""
        parts = text.split(_BORDER)
        if len(parts) != len(self._spans):
            raise Unreadable("an edit went across cells")
        out, position = [], 0
        for ((start, end), old), new in zip(self._spans, parts, strict=True):
            if new != old:
                out += [self._json[position:start], self._literal(new, start, end)]
                position = end
        out.append(self._json[position:])
        return super().with_text("".join(out))

    def _literal(self, text: str, start: int, end: int) -> str:
        old = self._json[start:end]
        if not old.startswith("["):
            return json.dumps(text, ensure_ascii=False)
        lines = [json.dumps(line, ensure_ascii=False) for line in text.splitlines(keepends=True)] or ['""']
        inner = re.match(r"\[(\s*)", old)
        outer = re.search(r"(\s*)\]$", old)
        assert inner is not None and outer is not None
        gap = inner.group(1)
        return "[" + gap + ("," + (gap or " ")).join(lines) + outer.group(1) + "]"

    def cell(self, offset: int) -> tuple[int, int]:
        """Code cell (from 1) that holds a character offset, and the line within it (from 1)."""
        before = self.text[:offset]
        index = before.count(_BORDER)
        start = before.rfind(_BORDER) + len(_BORDER) if index else 0
        return index + 1, before.count("\n", start) + 1

    @property
    def editable(self) -> str:
        """The joined cells as written, magics included; edits found in ``text`` apply to it."""
        return self.raw


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
