"""What names stand for, and how a file can spell a dotted name."""

from __future__ import annotations

import ast

import pytest

from tools.code.names import Names


def names(text: str) -> Names:
    return Names([s for s in ast.walk(ast.parse(text)) if isinstance(s, ast.Import | ast.ImportFrom | ast.Assign)])


@pytest.mark.parametrize(
    ("imports", "expression", "dotted"),
    [
        ("import torch", "torch.cuda.is_available", "torch.cuda.is_available"),
        ("import torch as t", "t.cuda", "torch.cuda"),
        ("import torch.cuda.amp", "torch.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("import torch.cuda.amp as amp", "amp.autocast", "torch.cuda.amp.autocast"),
        ("from torch import cuda as c", "c.synchronize", "torch.cuda.synchronize"),
        ("from torch.cuda.amp import GradScaler", "GradScaler", "torch.cuda.amp.GradScaler"),
        ("import torch", "getattr(torch, 'cuda').Stream", "torch.cuda.Stream"),
        ("import torch\ncuda = torch.cuda", "cuda.Event", "torch.cuda.Event"),
        ("from .common import torch", "torch.cuda", "torch.cuda"),
        ("from ..lib import cuda", "cuda.x", "..lib.cuda.x"),
        ("import torchvision", "torch.cuda", None),
        ("from torch import *", "cuda", None),
        ("import torch", "getattr(torch, name)", None),
        ("import torch", "torch.cuda().x", None),
        ("x = torch.cuda", "x.y", None),
    ],
)
def test_qualify(imports: str, expression: str, dotted: str | None) -> None:
    assert names(imports).qualify(ast.parse(expression, mode="eval").body) == dotted


def test_parameters_hide() -> None:
    node = ast.parse("torch", mode="eval").body
    assert names("import torch").qualify(node, frozenset({"torch"})) is None


@pytest.mark.parametrize(
    ("imports", "written"),
    [
        ("import torch", "torch.cuda.is_available"),
        ("import torch as t", "t.cuda.is_available"),
        ("from torch import cuda", "cuda.is_available"),
        ("import torch\nfrom torch.cuda import is_available as ok", "ok"),
        ("import numpy", None),
    ],
)
def test_spelling(imports: str, written: str | None) -> None:
    assert names(imports).spelling("torch.cuda.is_available") == written
