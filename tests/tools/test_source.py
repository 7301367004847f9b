"""Bytes to text and back, positions, and files that cannot be read."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.code.source import MAX_BYTES, SourceFile, Unreadable, load, parse

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12), max_size=8)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])


@given(LINES, ENDINGS, st.booleans())
def test_lines_are_those_of_the_parser(lines: list[str], ending: str, mark: bool) -> None:
    data = (b"\xef\xbb\xbf" if mark else b"") + ending.join(lines).encode()
    source = SourceFile("a.txt", data, python=False)
    assert [source.line(n) for n in range(1, len(source.starts) + 1)] == (lines or [""])
    assert source.with_text(source.text) == data


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.data())
def test_positions_lead_back(text: str, data: st.DataObject) -> None:
    source = SourceFile("a.txt", text.encode(), python=False)
    offset = data.draw(st.integers(0, len(text)))
    line, column = source.position(offset)
    start = source.starts[line - 1]
    assert start + column - 1 == offset
    assert source.offset(line, len(text[start:offset].encode())) == offset


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("body", ["x = 'é😀'; y = 1", "\fif x:\f\n\ty = '''a\nb'''", "\n\n  \nz = 2"])
def test_nodes_are_found_where_they_stand(body: str, ending: str) -> None:
    source = SourceFile("a.py", body.replace("\n", ending).encode())
    for node in ast.walk(parse(source)):
        if isinstance(node, ast.Name):
            start = source.offset(node.lineno, node.col_offset)
            assert source.text[start : start + len(node.id)] == node.id


def test_latin_1_by_its_comment() -> None:
    data = "# -*- coding: latin-1 -*-\nname = 'é'\n".encode("latin-1")
    source = SourceFile("a.py", data)
    assert source.encoding == "iso-8859-1" and "é" in source.text
    assert source.with_text(source.text) == data


def test_mark_stays() -> None:
    data = b"\xef\xbb\xbfx = 1\n"
    assert SourceFile("a.py", data).with_text("x = 2\n") == b"\xef\xbb\xbfx = 2\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"name = '\xe9'\n", "not utf-8 text"),
        (b"# coding: klingon\n", "unknown encoding"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding"),
        (b"# coding: hex\n00\n", "hex"),
        ("x = 1\n".encode("utf-16"), "not utf-8 text"),
    ],
)
def test_undecodable_text_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        SourceFile("a.py", data)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("x = 1\n\ny = (\n", "syntax error", 3),
        ("import os\nprint 'hello'\n", "Python 2", 2),
        ("try:\n    f()\nexcept E, e:\n    pass\n", "Python 2", 3),
        ("x = 1\0\n", "null byte", None),
        ("(" * 1000 + ")" * 1000, "nested", 1),
        ("x = " + "-" * 100_000 + "1\n", "parsed|syntax", None),
        ("a" + ".b" * 100_000 + "\n", "parsed|syntax", None),
    ],
    ids=["unclosed", "print", "except", "nul", "parentheses", "minus", "attributes"],
)
def test_unparsable_text_is_told(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        parse(SourceFile("a.py", text.encode()))
    assert caught.value.line == line or line is None


def test_large_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "generated.py"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(Unreadable, match=r"50\.0 MB"):
        load(path)
    path.write_bytes(b"#" * MAX_BYTES)
    assert len(load(path)) == MAX_BYTES


def test_pipes_and_folders_do_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path / "pipe.py", tmp_path, Path("/dev/zero")):
        with pytest.raises(Unreadable, match=r"not a regular file|directory"):
            load(path)


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        load(tmp_path / "gone.py")


@pytest.mark.parametrize(
    ("text", "indent"),
    [("x = 1\n", "    "), ("if x:\n  y = 1\n", "  "), ("if x:\r\n\ty = 1\r\n", "\t"), ("if x:\r\n   y()\r\n", "   ")],
)
def test_indent_is_the_files_own(text: str, indent: str) -> None:
    assert SourceFile("a.py", text.encode()).indent == indent
