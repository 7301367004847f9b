"""Loops that train: which losses they take backward, and what else happens in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.guards import dotted
from tools.module import Module

Loop = ast.For | ast.While


def steps(module: Module) -> Iterator[tuple[ast.Call, str, Loop]]:
    """Calls of ``backward`` inside a loop, with the name of the loss and the innermost loop around it."""
    for call in module.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr != "backward":
            continue
        loss = _loss(function.value)
        loop = innermost(module, call)
        if loss is not None and loop is not None:
            yield call, loss, loop


def _loss(value: ast.expr) -> str | None:
    """The loss of ``loss.backward()`` and ``scaler.scale(loss).backward()``."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and getattr(value.func, "attr", "") == "scale":
        value = value.args[0]
    return dotted(value)


def innermost(module: Module, node: ast.AST) -> Loop | None:
    """The innermost loop of the same function around a node."""
    for parent in module.ancestors(node):
        if isinstance(parent, ast.For | ast.While):
            return parent
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
    return None


def every_step(module: Module, node: ast.AST, loop: Loop) -> bool:
    """Whether a node runs in each turn of a loop: under no test and no other loop or function inside it."""
    child = node
    for parent in module.ancestors(node):
        if parent is loop:
            return child not in loop.orelse
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            return False
        if isinstance(parent, ast.FunctionDef | ast.Lambda | ast.ExceptHandler | ast.BoolOp):
            return False
        child = parent
    return False
