"""A file as its bytes and its text, with positions that lead back to the exact bytes."""

from __future__ import annotations

import ast
import bisect
import codecs
import io
import os
import re
import stat
import tokenize
import warnings
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from tools.code.strings import code_of

MAX_BYTES = 4 * 1024 * 1024
"""Larger files are generated or data; they are reported as skipped, not parsed."""

MAX_NOTEBOOK_BYTES = 32 * 1024 * 1024
"""The same for notebooks, which carry their output (images) with them."""

_LINE_END = re.compile(r"\r\n|\r|\n")


class Unreadable(Exception):
    """A file that cannot be examined; ``line`` is where known.

    Attributes:
        reason: what is wrong, for the person who owns the file.
        line: 1-based line, or None.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class SourceFile:
    """The text of one file and where its lines start.

    Args:
        relative: POSIX path for messages.
        data: the file's bytes.
        python: whether Python's own encoding rules (byte order mark, PEP 263 comment) hold; other files are UTF-8.

    Raises:
        Unreadable: if the bytes are not text in the declared encoding.
    """

    def __init__(self, relative: str, data: bytes, *, python: bool = True) -> None:
        self.relative = relative
        self.data = data
        self.encoding = _encoding(data) if python else "utf-8"
        self._mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        body = data[len(self._mark) :]
        try:
            self.text = body.decode(self.encoding)
            survives = self.text.encode(self.encoding) == body
        except (ValueError, LookupError) as error:
            raise Unreadable(f"not {self.encoding} text: {error}") from error
        if not survives:
            raise Unreadable(f"the {self.encoding} text does not survive a round trip")

    def with_text(self, text: str) -> bytes:
        """The file's bytes with another text, in the same encoding and with the same byte order mark."""
        return self._mark + text.encode(self.encoding)

    @property
    def editable(self) -> str:
        """The text that edits apply to; as long as ``text`` and usually the same."""
        return self.text

    @cached_property
    def code(self) -> str:
        """The text with comments and long strings blanked; all of it where lines do not end with a line feed alone."""
        return self.text if "\r" in self.text else code_of(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line's first character."""
        # newline="" ends lines where Python does (\\n, \\r, \\r\\n) and keeps the endings; this runs in C.
        ends = list(accumulate(map(len, io.StringIO(self.text, newline="")), initial=0))
        if len(ends) > 1 and not self.text.endswith(("\n", "\r")):
            ends.pop()
        return ends

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    @cached_property
    def newline(self) -> str:
        """The file's line ending, by its first line."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    @cached_property
    def indent(self) -> str:
        """One level of indentation as this file has it: a tab, or its smallest run of leading spaces (4 if none)."""
        if re.search(r"^\t", self.text, re.MULTILINE):
            return "\t"
        widths = [len(run) for run in re.findall(r"(?<=:\n)( +)(?=\S)", self.text.replace("\r\n", "\n"))]
        return " " * (min(widths) if widths else 4)

    def line(self, number: int) -> str:
        """Line ``number`` (from 1) without its ending."""
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, utf8_column: int) -> int:
        """Character offset of ``ast`` coordinates: a 1-based line and a 0-based UTF-8 byte column."""
        start = self.starts[line - 1]
        if self._ascii or self.text[start : start + utf8_column].isascii():
            return start + utf8_column
        whole = self.text[start : self.starts[line] if line < len(self.starts) else len(self.text)]
        return start + len(whole.encode("utf-8")[:utf8_column].decode("utf-8"))

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of a character offset."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


def load(path: Path) -> bytes:
    """The bytes of a regular file of ordinary size; opening a pipe or a device does not wait.

    Raises:
        Unreadable: too large, not a regular file, or not readable.
    """
    try:
        with open(os.open(path, _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("not a regular file")
            limit = MAX_NOTEBOOK_BYTES if path.suffix == ".ipynb" else MAX_BYTES
            if status.st_size > limit:
                size = f"{status.st_size / 1e6:.1f} MB"
                raise Unreadable(f"{size}; files over {limit / 1e6:.1f} MB are taken for generated or data")
            return file.read(limit + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from error


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def parse(source: SourceFile, text: str | None = None) -> ast.Module:
    """Parses Python source.

    Args:
        source: the file.
        text: what to parse in place of the file's own text.

    Raises:
        Unreadable: with the line, and a hint where the file looks like Python 2.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text if text is None else text)
    except SyntaxError as error:
        hint = " (Python 2?)" if _PYTHON_2.search(source.text) else ""
        raise Unreadable(f"syntax error: {error.msg}{hint}", error.lineno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"cannot be parsed: {error}") from error


_PYTHON_2 = re.compile(r"^\s*(print\s+[\"'\w]|except\s+\w+\s*,\s*\w+:|exec\s+[\"'\w])", re.MULTILINE)


def _encoding(data: bytes) -> str:
    head = data[:400]
    if b"coding" not in head:
        return "utf-8"
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    except SyntaxError as error:
        raise Unreadable(f"unknown encoding declared: {error.msg}") from error
    return "utf-8" if name == "utf-8-sig" else name
