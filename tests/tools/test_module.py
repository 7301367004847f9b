"""What a module shows its rules: nodes near the words, names as imports bind them, exact text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.code.module import Module, fact, keyword, parameters, string
from tools.code.sieve import Reader
from tools.code.source import SourceFile, Unreadable
from tools.project import TextProject
from tools.rules.base import Match, PythonRule


def module(text: str, *words: str, whole: bool = True) -> Module:
    data = text.encode()
    return Module(SourceFile("a.py", data), TextProject(Path(), texts={"a.py": data}), words, whole=whole)


def for_rule(text: str, word: str, *, whole: bool = True) -> Module:
    """The module as a scan makes it for a rule that wakes for a word."""

    class Wakes(PythonRule):
        """A rule for tests."""

        ID, NAME, FAMILY, MESSAGE, TRIGGERS = "TPU000", "wakes", "A", "wakes", (word,)

        def check(self, module: Module) -> Iterator[Match]:
            yield from ()

    source = SourceFile("a.py", text.encode())
    project = TextProject(Path(), texts={"a.py": text.encode()})
    return Module(source, project, Reader(source).interest([Wakes()]), whole=whole)


def called(seen: Module) -> list[str]:
    return [seen.text(call.func) for call in seen.nodes(ast.Call)]


def test_visits_statements_that_touch_a_word_and_no_others() -> None:
    seen = module("alpha()\nbeta(\n    'cuda',\n)\ngamma()\nif test():\n    x.cuda()\n    delta()\n", "cuda")
    assert called(seen) == ["beta", "x.cuda"]


def test_visits_imports_always() -> None:
    assert [i.names[0].name for i in module("import numpy\nx()\n", "cuda").nodes(ast.Import)] == ["numpy"]


def test_a_decorated_function_is_visited_for_its_decorator() -> None:
    seen = module("@compile(mode='cuda')\ndef f():\n    pass\n\n\ndef g():\n    pass\n", "cuda")
    assert [f.name for f in seen.nodes(ast.FunctionDef)] == ["f"]


def test_a_word_as_something_is_found_under_its_other_name() -> None:
    seen = for_rule("from torch.amp import GradScaler as Scaler\nx = 1\ns = Scaler()\n", "GradScaler")
    assert [seen.qualify(call.func) for call in seen.nodes(ast.Call)] == ["torch.amp.GradScaler"]


def test_every_node_is_there_for_who_asks() -> None:
    seen = module("alpha()\nbeta()\n", "cuda")
    assert called(seen) == []
    assert sum(isinstance(node, ast.Call) for node in seen.walk_all) == 2


@pytest.mark.parametrize(
    "text", ["x = 'ä€😀'; y = f('cuda')\n", "if f(a, cuda):\n    pass\n", "x = f(1 +\r\n      cuda)\r\n"]
)
def test_text_is_the_characters_of_a_node(text: str) -> None:
    seen = module(text, "cuda")
    found = list(seen.nodes(ast.Call, ast.BinOp))
    assert found
    for node in found:
        start, end = seen.span(node)
        assert seen.source.text[start:end] == seen.text(node)
        assert ast.dump(ast.parse(f"({seen.text(node)})", mode="eval").body) == ast.dump(node)


def test_a_replacement_covers_the_node() -> None:
    seen = module("x = f('cuda')\n", "cuda")
    call = next(seen.nodes(ast.Call))
    edit = seen.replace(call, "g()")
    assert (edit.start, edit.end, edit.replacement) == (4, 13, "g()")


def test_knows_what_is_around_a_node() -> None:
    seen = module("def f(a):\n    def g():\n        h(lambda: 'cuda')\n", "cuda")
    literal = next(seen.nodes(ast.Constant))
    inner = seen.function(literal)
    assert isinstance(inner, ast.Lambda)
    assert getattr(seen.function(inner), "name", "") == "g"
    assert isinstance(seen.statement(literal), ast.Expr)
    assert [type(node).__name__ for node in seen.ancestors(literal)] == [
        "Lambda", "Call", "Expr", "FunctionDef", "FunctionDef", "Module",
    ]  # fmt: skip
    assert seen.parent(seen.tree) is None
    with pytest.raises(ValueError, match="no statement"):
        seen.statement(seen.tree)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.cuda.synchronize()\n", "torch.cuda.synchronize"),
        ("import torch as t\nt.cuda.synchronize()\n", "torch.cuda.synchronize"),
        ("from torch import cuda\ncuda.synchronize()\n", "torch.cuda.synchronize"),
        ("from torch.cuda import synchronize as cuda_wait\ncuda_wait()\n", "torch.cuda.synchronize"),
        ("import torch\ngetattr(torch, 'cuda').synchronize()\n", "torch.cuda.synchronize"),
        ("import torch\n\ndef f(torch):\n    torch.cuda.synchronize()\n", None),
        ("cuda.synchronize()\n", None),
    ],
)
def test_a_name_stands_for_what_imports_bind(text: str, name: str | None) -> None:
    seen = module(text, "cuda")
    outer = [call for call in seen.nodes(ast.Call) if seen.text(call).endswith("()")]
    assert [seen.qualify(call.func) for call in outer] == [name]


def test_calls_and_references_by_name() -> None:
    seen = module("import torch\nf = torch.cuda.synchronize\ntorch.cuda.synchronize()\nf()  # cuda\n", "cuda")
    assert len(list(seen.calls("torch.cuda.synchronize"))) == 2
    written = [seen.text(node) for node in seen.references("torch.cuda.synchronize")]
    assert sorted(written) == ["f", "f", "torch.cuda.synchronize", "torch.cuda.synchronize"]
    assert not list(seen.calls("torch.cuda"))


def test_a_fact_is_found_once_a_module() -> None:
    asked = []

    @fact
    def length(seen: Module) -> int:
        asked.append(seen)
        return len(seen.source.text)

    first, second = module("x\n"), module("xy\n")
    assert [length(first), length(first), length(second)] == [2, 2, 3]
    assert asked == [first, second]


def test_what_does_not_parse_is_refused() -> None:
    with pytest.raises(Unreadable):
        module("def f(:\n", "cuda")


LONG = "import torch\n\n\ndef f(x):\n    return x.cuda()\n\n\n" + "".join(
    f"def quiet_{number}(x):\n    y = x + {number}\n    return y\n\n\n" for number in range(400)
)


def test_a_scan_leaves_out_bodies_without_a_word_and_sees_the_same() -> None:
    whole, part = for_rule(LONG, "cuda"), for_rule(LONG, "cuda", whole=False)
    assert sum(1 for _ in ast.walk(part.tree)) < sum(1 for _ in ast.walk(whole.tree)) / 2
    for kind in (ast.Call, ast.FunctionDef, ast.Attribute):
        assert [ast.dump(n) for n in part.nodes(kind)] == [ast.dump(n) for n in whole.nodes(kind)]
        assert [part.span(n) for n in part.nodes(kind)] == [whole.span(n) for n in whole.nodes(kind)]


def test_names_of_parameters_of_every_kind() -> None:
    function = ast.parse("def f(a, /, b, *c, d=1, **e): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert parameters(function) == {"a", "b", "c", "d", "e"}


def test_keywords_and_strings() -> None:
    call = ast.parse("f('x', device=g, **more)", mode="eval").body
    assert isinstance(call, ast.Call)
    found = keyword(call, "device")
    assert found is not None
    assert isinstance(found.value, ast.Name)
    assert keyword(call, "dtype") is None
    assert [string(call.args[0]), string(found.value), string(None)] == ["x", None, None]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('x = f"{a.cuda()}"\n', "b if c != 'cpu' else d"),
        ("x = f'{a.cuda()}'\n", 'b if c != "cpu" else d'),
        ('x = f"""{a.cuda()}"""\n', 'b if c != "cpu" else d'),
        ("x = a.cuda()\n", 'b if c != "cpu" else d'),
    ],
)
def test_a_replacement_leaves_the_quotes_of_its_f_string_alone(text: str, written: str) -> None:
    seen = module(text, "cuda")
    call = next(seen.nodes(ast.Call))
    assert seen.replace(call, 'b if c != "cpu" else d').replacement == written
