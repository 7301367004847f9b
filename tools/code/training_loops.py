"""Loops that train: which losses they take backward, and what else happens in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import dotted
from tools.code.module import Module

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


def each_step(loop: Loop) -> Iterator[tuple[ast.Call, bool]]:
    """Calls that happen in each turn of a loop, in order, and whether each is part of a test.

    Not so what stands under a condition, in a handler, in an inner function or in the loop's ``else``.
    """
    for statement in loop.body:
        yield from _always(statement, asked=False)


def _always(node: ast.AST, *, asked: bool) -> Iterator[tuple[ast.Call, bool]]:
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        yield from _always(node.test, asked=True)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    if isinstance(node, ast.BoolOp):
        yield from _always(node.values[0], asked=asked)
        return
    children: list[ast.AST] = [*node.body] if isinstance(node, ast.Try) else list(ast.iter_child_nodes(node))
    for child in children:
        yield from _always(child, asked=asked)
    if isinstance(node, ast.Call):
        yield node, asked
