"""Bodies of no interest are left out, and what stays keeps its place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.code.carve import carve
from tools.code.source import SourceFile
from tools.engine import examine
from tools.project import TextProject
from tools.rules import all_rules

TEXT = '''"""Top."""
import os


@decorate(
    [1, 2],
)
def quiet(
    a: dict[str, int] = {"x": 1},
) -> None:
    """Says
def nothing():
    of interest."""
    return [
        1,
    ]
    # a comment that ends the body


class Holder:
    def loud(self):
        call("cuda")

    async def calm(self): # why
        for x in y:
            z()

    def short(self): return 1


VALUE = """
def not_code(): pass
"""
def last():
    pass
'''


def carved(text: str, *words: str) -> str:
    lines = [n for n, line in enumerate(text.split("\n"), 1) if any(word in line for word in words)]
    source = SourceFile("a.py", text.encode())
    return carve(text, source.code, source.starts, lines)


def test_what_stays_keeps_line_and_column() -> None:
    short = carved(TEXT, "cuda")
    assert len(short) < len(TEXT)
    whole = {(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(TEXT)) if isinstance(n, ast.FunctionDef)}
    left = {(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(short)) if isinstance(n, ast.FunctionDef)}
    assert left == whole
    place = next(n for n in ast.walk(ast.parse(short)) if isinstance(n, ast.Constant) and n.value == "cuda")
    assert TEXT.split("\n")[place.lineno - 1][place.col_offset :].startswith('"cuda"')


def test_only_quiet_bodies_go() -> None:
    short = carved(TEXT, "cuda")
    assert 'call("cuda")' in short and "class Holder:" in short
    assert "of interest" not in short and "z()" not in short and "return 1" not in short and "decorate" not in short
    assert "VALUE" not in short


def test_module_level_stays_where_one_of_its_statements_matters() -> None:
    assert "VALUE" in carved(TEXT + 'x = "cuda"\n', "cuda")
    assert "VALUE" not in carved(TEXT + "import cuda\n", "cuda")


def test_imports_of_torch_stay() -> None:
    text = "\ndef f(x):\n    import torch.nn as nn  # why\n    if x:\n        from torch import (\n"
    text += "            zeros,\n        )\n    x()\n"
    assert ast.dump(ast.parse(carved(text + "y = 1\n", "nothing")).body[0]).count("alias") == 2


def test_a_bracket_at_the_margin_is_not_cut() -> None:
    with pytest.raises(SyntaxError):
        ast.parse(carved("\ndef f():\n    x = [\n1,\n]\n", "1,"))


def test_everything_of_interest_leaves_all() -> None:
    assert carved(TEXT, "") == TEXT


@pytest.mark.parametrize(
    "odd",
    [
        "def f():\n    x = (\n1)\n    return 'x'\n",
        "def f():\n    x = 1 + \\\n2\n    return x\n",
        "def f():\n    return '''\ndef g():\n'''\n",
        "x = 1\nif x:\n\tdef f():\n\t\treturn 2\n",
    ],
)
def test_findings_are_those_of_the_whole_file(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.code.module._LONG", 0)
    data = (odd + "import torch\nx = torch.ones(1).cuda()\n").encode()
    project = TextProject(Path(), texts={"a.py": data})
    whole = examine("a.py", data, project, all_rules())
    short = examine("a.py", data, project, all_rules(), whole=False)
    assert whole.matches and short.matches == whole.matches
