"""Calls that a program tries, to learn from their failure whether there is CUDA."""

from __future__ import annotations

import ast

from tools.code.module import FUNCTIONS, Module

_CAUGHT = frozenset({"Exception", "BaseException", "RuntimeError", "AssertionError"})
_SHORT = 3
"""Statements up to which a ``try`` block is taken for a question, and not for the program."""


def decides_by_failure(module: Module, node: ast.AST) -> bool:
    """Whether the failure of ``node`` without CUDA decides something, so that it must still fail there.

    That is so in a short ``try`` whose handler does not raise again, when something hangs on the outcome: the handler
    or an ``else`` does more than pass, or more follows in the block.
    """
    child = node
    for parent in module.ancestors(node):
        if isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
            return False
        if isinstance(parent, ast.Try) and child in parent.body and len(parent.body) <= _SHORT:
            handlers = [handler for handler in parent.handlers if catches(handler)]
            if handlers:
                rest = parent.body[parent.body.index(child) + 1 :]
                return not any(_ends(h) for h in handlers) and (
                    any(not _passes(h.body) for h in handlers) or bool(parent.orelse) or not _passes(rest)
                )
        if isinstance(parent, ast.With) and child in parent.body and any(map(_suppresses, parent.items)):
            return not _passes(parent.body[parent.body.index(child) + 1 :])
        child = parent
    return False


def _suppresses(item: ast.withitem) -> bool:
    """Whether it is ``contextlib.suppress`` of the errors that PyTorch raises without CUDA."""
    call = item.context_expr
    function = call.func if isinstance(call, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    kinds = call.args if isinstance(call, ast.Call) and name == "suppress" else []
    return any(isinstance(kind, ast.Name) and kind.id in _CAUGHT for kind in kinds)


def catches(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is for the errors that PyTorch raises without CUDA."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _CAUGHT) for kind in kinds)


def raises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises, the same error again or another."""
    return any(isinstance(part, ast.Raise) for statement in handler.body for part in ast.walk(statement))


def _passes(block: list[ast.stmt]) -> bool:
    return all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in block
    )


def _ends(handler: ast.ExceptHandler) -> bool:
    """Whether a handler stops the program: the failure was no question then."""
    return raises(handler) or "exit(" in ast.unparse(handler.body[-1])
