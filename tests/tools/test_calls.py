"""Edits of a call's arguments keep every other character and end up in the right place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.code.calls import (
    add_keyword,
    argument,
    conjunction,
    is_on_cpu_or_cuda,
    only_if,
    prepend_argument,
    remove_keyword,
)
from tools.code.edits import Edit, apply
from tools.code.module import Module
from tools.code.source import SourceFile
from tools.project import TextProject


def module(text: str) -> Module:
    return Module(SourceFile("a.py", text.encode()), TextProject(Path()), ("f",))


def edited(text: str, edit: Edit) -> str:
    return apply(text, [edit])


def call(parsed: Module) -> ast.Call:
    return next(n for n in parsed.nodes(ast.Call) if isinstance(n.func, ast.Name) and n.func.id == "f")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f()", "f(k=1)"),
        ("f( )", "f( k=1)"),
        ("f(a, b)", "f(a, b, k=1)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a=(b == 'c'))", "f(a=(b == 'c'), k=1)"),
        ("f(\n    a,\n    b,  # last )\n)", "f(\n    a,\n    b, k=1,  # last )\n)"),
        ("f(*a, **b)", "f(*a, **b, k=1)"),
        ("f('ä', b)", "f('ä', b, k=1)"),
    ],
)
def test_adds_a_keyword(text: str, wanted: str) -> None:
    parsed = module(text)
    assert edited(text, add_keyword(parsed, call(parsed), "k=1")) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"), [("f()", "f('x')"), ("f(a)", "f('x', a)"), ("f(\n    a)", "f('x', \n    a)")]
)
def test_prepends_an_argument(text: str, wanted: str) -> None:
    parsed = module(text)
    assert edited(text, prepend_argument(parsed, call(parsed), "'x'")) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f(k=1)", "f()"),
        ("f(k=1, a=2)", "f(a=2)"),
        ("f(a, k=1)", "f(a)"),
        ("f((a), k=1, b=2)", "f((a), b=2)"),
        ("f(\n    a=1,\n    k=(1),\n    b=2,\n)", "f(\n    a=1,\n    b=2,\n)"),
        ("f(k=1, **rest)", "f(**rest)"),
    ],
)
def test_removes_a_keyword(text: str, wanted: str) -> None:
    parsed = module(text)
    assert edited(text, remove_keyword(parsed, call(parsed), "k")) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("True", "c"),
        ("a", "a and c"),
        ("a or b", "(a or b) and c"),
        ("(a or b)", "(a or b) and c"),
        ("a and b", "a and b and c"),
        ("a if b else d", "(a if b else d) and c"),
        ("not a", "not a and c"),
        ("(a == 1)", "(a == 1) and c"),
    ],
)
def test_combines_with_a_condition(value: str, wanted: str) -> None:
    text = f"f(x, k={value})"
    parsed = module(text)
    given = argument(call(parsed), "k")
    assert given is not None
    assert edited(text, conjunction(parsed, call(parsed), given, "c")) == f"f(x, k={wanted})"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("a", "a if c else None"), ("(a)", "(a) if c else None"), ("a if b else d", "(a if b else d) if c else None")],
)
def test_keeps_a_value_under_a_condition(value: str, wanted: str) -> None:
    text = f"f({value})"
    parsed = module(text)
    given = argument(call(parsed), "k", 0)
    assert given is not None
    assert edited(text, only_if(parsed, call(parsed), given, "c", "None")) == f"f({wanted})"


def test_positions_behind_a_star_are_unknown() -> None:
    parsed = module("f(*a, b)")
    assert argument(call(parsed), "k", 1) is None


@pytest.mark.parametrize(
    ("text", "wanted"), [('t in ("cpu", "cuda")', True), ("t in ('cuda',)", False), ("t == 'cpu'", False)]
)
def test_knows_its_own_test(text: str, wanted: bool) -> None:
    assert is_on_cpu_or_cuda(ast.parse(text, mode="eval").body) is wanted
