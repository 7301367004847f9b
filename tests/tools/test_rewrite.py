"""How rules name the resolved device: one name a file, and only where it stands for that device."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.code.module import Module
from tools.code.rewrite import device_type, resolved_variables
from tools.code.source import SourceFile
from tools.project import TextProject
from tools.rules import all_rules
from tools.rules.base import interest

RESOLVED = "torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'"


def parsed(text: str) -> Module:
    source = SourceFile("train.py", text.encode())
    return Module(source, TextProject(Path(), texts={"train.py": text.encode()}), interest(list(all_rules())))


def marked(module: Module) -> ast.expr:
    """The literal `'cuda'` of the text."""
    return next(node for node in module.nodes(ast.Constant) if node.value == "cuda")


@pytest.mark.parametrize(
    "use",
    [
        "with autocast(kind, dtype=dtype):\n    x.to('cuda')\n",
        "call(\n    kind=kind,\n    where='cuda',\n)\n",
        "def f():\n    return x.to('cuda')\n",
        "def other(kind):\n    return kind\n\n\ny = x.to('cuda')\n",
    ],
)
def test_uses_the_name_a_file_has(use: str) -> None:
    module = parsed(f"import torch\n\nkind = {RESOLVED}\n{use}")
    assert device_type(module, marked(module)) == ("kind", [])


@pytest.mark.parametrize(
    "use",
    [
        "kind = 'cpu'\nx.to('cuda')\n",
        "def f(kind):\n    return x.to('cuda')\n",
        "def f():\n    kind = 'meta'\n    return x.to('cuda')\n",
        "def f():\n    global kind\n    kind = 'meta'\n\n\nx.to('cuda')\n",
        "for kind in kinds:\n    x.to('cuda')\n",
    ],
)
def test_does_not_use_a_name_that_may_mean_something_else(use: str) -> None:
    module = parsed(f"import torch\n\nkind = {RESOLVED}\n{use}")
    name, edits = device_type(module, marked(module))
    assert name == "DEVICE_TYPE"
    assert len(edits) == 1


def test_a_name_bound_under_another_spelling_of_torch_counts() -> None:
    module = parsed(f"import torch as t\n\nkind = {RESOLVED.replace('torch', 't')}\nx.to('cuda')\n")
    assert list(resolved_variables(module)) == ["kind"]
