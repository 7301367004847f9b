"""What the engine does with any file and any rule, also with rules at fault."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.code.edits import Edit, Fix
from tools.code.module import Module
from tools.code.source import SourceFile
from tools.engine import applicable, examine, finding, fix, is_python
from tools.project import TextProject
from tools.rules import all_rules, selected
from tools.rules.base import Match, PythonRule, Rule, TextRule
from tools.settings import ScanSettings

LINES = [
    "import torch",
    "import torch as t",
    "from torch import cuda as c",
    "x = x.cuda()",
    "y = net(x).cuda(non_blocking=True)  # \u00e9\U0001f600",
    "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
    "a = 1; b = z.cuda(); d = 2",
    "if flag: w = w.cuda()",
    "s = '''\n  torch.cuda\n\t'''",
    "p = q.to('cuda:0', dtype=r)",
    "e = f(\n    g,\n      h.cuda(),\n)",
    "@deco('cuda')\nclass K:\n    def m(self, device='cuda'):\n        torch.cuda.synchronize()\n        return 1",
    "\f",
    "",
    "# torch.cuda.synchronize() # comment",
    "torch.cuda.synchronize()",
    "for i in l:\n\ttorch.cuda.empty_cache()\n\ti.cuda()",
    "v = torch.cuda.max_memory_allocated()",
]
FILES = st.tuples(
    st.lists(st.sampled_from(LINES), max_size=10),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.sampled_from(["", "\ufeff"]),
)


def built(case: tuple[list[str], str, bool, str]) -> bytes:
    lines, newline, end, mark = case
    return (mark + "\n".join(lines) + ("\n" if end else "")).replace("\n", newline).encode()


def project(data: bytes, path: str = "a.py", **settings: object) -> TextProject:
    return TextProject(Path(), ScanSettings.model_validate(settings), texts={path: data})


@settings(max_examples=25)
@given(FILES)
def test_fixed_files_parse_rest_and_keep_their_endings(case: tuple[list[str], str, bool, str]) -> None:
    data = built(case)
    once = fix("a.py", data, project(data), all_rules(), unsafe=True)
    assert not once.skipped
    ast.parse(once.data)
    again = fix("a.py", once.data, project(once.data), all_rules(), unsafe=True)
    assert again.data == once.data and not again.skipped
    newline = case[1].encode()
    if newline in data:
        assert not set(once.data.replace(newline, b"")) & set(b"\r\n")
    assert once.data.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")


@settings(max_examples=25)
@given(FILES)
def test_a_scan_changes_nothing_and_points_at_text(case: tuple[list[str], str, bool, str]) -> None:
    data = built(case)
    seen = examine("a.py", data, project(data), all_rules())
    for rule, match in seen.matches:
        assert seen.source is not None and 0 <= match.start < match.end <= len(seen.source.text)
        found = finding(rule, match, seen.source)
        assert found.source == seen.source.line(found.line)
        assert (found.line, found.column) < (found.end_line, found.end_column)


@settings(max_examples=25)
@given(FILES)
def test_lines_without_a_finding_survive(case: tuple[list[str], str, bool, str]) -> None:
    data = built(case)
    rules = selected(["TPU104"])
    before = SourceFile("a.py", data)
    touched = {
        n
        for _, m in examine("a.py", data, project(data), rules).matches
        for n in range(before.position(m.start)[0], before.position(m.end)[0] + 1)
    }
    after = SourceFile("a.py", fix("a.py", data, project(data), rules).data)
    old = [before.line(n) for n in range(1, len(before.starts) + 1)]
    new = [after.line(n) for n in range(1, len(after.starts) + 1)]
    for tag, first, last, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            assert {n + 1 for n in range(first, last) if old[n]} <= touched


class _Odd(PythonRule):
    """A rule for tests."""

    ID, NAME, FAMILY, MESSAGE, TRIGGERS = "TPU000", "odd", "A", "odd", ("odd*",)

    def check(self, module: Module) -> Iterator[Match]:
        for node in module.nodes(ast.Name):
            start, end = module.span(node)
            yield Match(start, end, fix=self.fix(start, end))

    def fix(self, start: int, end: int) -> Fix:
        raise NotImplementedError


class Raises(_Odd):
    """Has a fault."""

    def fix(self, start: int, end: int) -> Fix:
        raise KeyError("oops")


class Breaks(_Odd):
    """Writes what is not Python."""

    def fix(self, start: int, end: int) -> Fix:
        return Fix((Edit(start, end, "(("),))


class Restless(_Odd):
    """Never comes to rest."""

    def fix(self, start: int, end: int) -> Fix:
        return Fix((Edit(start, end, "odd_" + "x" * (end - start)),))


class Outside(_Odd):
    """Edits beyond the end."""

    def fix(self, start: int, end: int) -> Fix:
        return Fix((Edit(start, end + 1000, ""),))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [(Raises(), "KeyError"), (Breaks(), "would not parse"), (Restless(), "without end"), (Outside(), "do not fit")],
)
def test_a_rule_at_fault_costs_nothing_but_its_fix(rule: Rule, reason: str) -> None:
    data = b"odd = 1\n"
    seen = fix("a.py", data, project(data), [rule])
    assert seen.data == data
    told = [*seen.skipped, *examine("a.py", data, project(data), [rule]).skipped]
    assert reason in told[0].reason and "TPU000" in told[0].reason


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("# noqa: TPU104", 0),
        ("#noqa:TPU104", 0),
        ("# NOQA: E501, TPU104", 0),
        ("# noqa: E501 TPU104", 0),
        ("# noqa: TPU1", 0),
        ("# noqa: TPU103", 1),
        ("# noqa", 1),
        ("# noqa: E501", 1),
    ],
)
def test_noqa(comment: str, count: int) -> None:
    data = f"x = x.cuda()  {comment}\n".encode()
    assert len(examine("a.py", data, project(data), selected(["TPU104"])).matches) == count
    if not count:
        assert fix("a.py", data, project(data), selected(["TPU104"])).data == data


def test_noqa_on_the_last_line_of_a_match() -> None:
    data = b"x = f(\n    y\n).cuda()  # noqa: TPU104\n"
    assert not examine("a.py", data, project(data), selected(["TPU104"])).matches


def test_per_file_ignores() -> None:
    data = b"x = x.cuda()\n"
    quiet = project(data, **{"per-file-ignores": {"a.py": ["TPU104"]}})
    assert not examine("a.py", data, quiet, selected(["TPU104"])).matches
    assert fix("a.py", data, quiet, selected(["TPU104"])).data == data
    assert applicable("b.py", data, quiet, selected(["TPU104"]))


@pytest.mark.parametrize(
    ("path", "first", "python"),
    [
        ("train", "#!/usr/bin/env python", True),
        ("bin/train", "#!/usr/bin/python3.11 -u", True),
        ("train", "#!/bin/bash", False),
        ("train", "import torch", False),
        ("notes.txt", "#!/usr/bin/env python", False),
        ("train", "#!/usr/bin/env pythonista", False),
    ],
)
def test_scripts_without_a_suffix(path: str, first: str, python: bool) -> None:
    data = f"{first}\nx = x.cuda()\n".encode()
    assert is_python(path, data) is python
    fixed = fix(path, data, project(data, path), selected(["TPU104"])).data
    assert (fixed != data) is python and fixed.startswith(first.encode())


@pytest.mark.parametrize(
    "data",
    [b"x = (.cuda()\n", b"print 'x'\ny.cuda()\n", b"x.cuda() # \xe9\n", b"x.cuda()\0\n", b"x.cuda(" + b"[" * 500],
    ids=["syntax", "python 2", "encoding", "nul", "nested"],
)
def test_files_that_cannot_be_examined_are_told(data: bytes) -> None:
    seen = examine("a.py", data, project(data), all_rules())
    assert [s.path for s in seen.skipped] == ["a.py"] and not seen.matches
    assert fix("a.py", data, project(data), all_rules(), unsafe=True).data == data


def test_a_long_line_takes_reasonable_work() -> None:
    data = ("; ".join(f"x{n} = x{n}.cuda()" for n in range(2000)) + " # \u00e9").encode()
    assert len(examine("a.py", data, project(data), selected(["TPU104"])).matches) == 2000


def test_latin_1_files_are_fixed_in_their_encoding() -> None:
    data = "# coding: latin-1\nimport torch\nx = '\u00e9'; y = y.cuda()\n".encode("latin-1")
    new = fix("a.py", data, project(data), selected(["TPU104"])).data
    assert b"x = '\xe9'; y = y.to(DEVICE_TYPE)" in new


class Shell(TextRule):
    """Finds a word in shell scripts."""

    ID, NAME, FAMILY, MESSAGE, TRIGGERS = "TPU009", "shell", "A", "shell", ("word",)
    FILES, INTERPRETERS = ("*.sh", "jobs/*.txt"), ("bash", "sh")

    def check(self, source: SourceFile) -> Iterator[Match]:
        place = source.text.index("word")
        yield Match(place, place + 4, fix=Fix((Edit(place, place + 4, "done"),)))


@pytest.mark.parametrize(
    ("path", "data", "found"),
    [
        ("a.sh", b"word", True),
        ("b/a.sh", b"word", True),
        ("jobs/a.txt", b"word", True),
        ("a.txt", b"word", False),
        ("run", b"#!/bin/sh\nword", True),
        ("run", b"#!/usr/bin/env bash\nword", True),
        ("run", b"#!/usr/bin/python\nword", False),
        ("a.sh", b"\xff word", False),
    ],
)
def test_text_rules(path: str, data: bytes, found: bool) -> None:
    assert (fix(path, data, project(data, path), [Shell()]).data != data) is found
