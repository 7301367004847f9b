"""TPU992: losses kept with their graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.code.training_loops import Loop, steps
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = "assumes that the kept values are only looked at; a sum is kept in float32"


class DetachKeptLoss(PythonRule):
    """``losses.append(loss)`` and ``total += loss`` keep each step's loss with what it was computed from.

    Memory grows with every step, and a sum in bfloat16 stops growing at 256 times its terms. ``loss.detach()`` keeps the
    value alone, ``.float()`` sums it in float32; a value in float32 is the same as before.

    Unsafe, because the kept values lose their gradients, which a later ``backward()`` would need. Only losses whose own
    ``backward()`` is called in the same loop count, and only where no other is.
    """

    ID = "TPU992"
    NAME = "detach-kept-loss"
    FAMILY = "O"
    GRADE = Grade.UNSAFE
    MESSAGE = "this keeps the loss of every step with its graph"
    TRIGGERS = (".backward(",)
    PATTERN = r"\.append\([\w.]*loss[\w.]*\)|\+= *[\w.]*loss\b"
    COVERS = ("I7", "O3", "N1")
    VALID = (
        "for x in data:\n    loss = f(x)\n    loss.backward()\n    losses.append(loss.item())\n    total += loss.detach()\n",
        "for x in data:\n    loss = f(x)\n    total += loss\ntotal.backward()\n",
        "for x in data:\n    loss += part(x)\n    loss.backward(retain_graph=True)\n    kept.append(loss)\n",
        "for x in data:\n    loss.backward()\n    kept.append(x)\n",
        "for x in data:\n    loss = f(x)\n    loss.backward()\n    loss = loss.detach().requires_grad_()\n    kept.append(loss)\n",
        "for x in data:\n    for part in parts(x):\n        loss += part_loss\n    loss.backward()\n",
    )
    INVALID = (
        Invalid(
            "for x in data:\n    loss = f(x)\n    loss.backward()\n    losses.append(loss)\n    total += loss\n",
            "for x in data:\n    loss = f(x)\n    loss.backward()\n    losses.append(loss.detach())\n    total += loss.detach().float()\n",
            count=2,
            unsafe=True,
        ),
        Invalid(
            "for x in data:\n    loss = f(x)\n    scaler.scale(loss).backward()\n    history['loss'].append(loss)\n",
            "for x in data:\n    loss = f(x)\n    scaler.scale(loss).backward()\n    history['loss'].append(loss.detach())\n",
            unsafe=True,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields losses that are kept."""
        backward = list(steps(module))
        for call, loss, loop in backward:
            scope = module.function(call) or module.tree
            alone = sum(module.text(c).endswith(")") for c in _backwards(scope)) == 1
            if call.args or call.keywords or not alone or on_cuda_path(module, call):
                continue
            yield from self._kept(module, loop, loss)

    def _kept(self, module: Module, loop: Loop, loss: str) -> Iterator[Match]:
        if _detached(module, loop, loss):
            return
        for statement in (n for s in loop.body for n in ast.walk(s)):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
                value, more = statement.value, ".detach().float()"
                if dotted(statement.target) == loss:
                    continue
            elif isinstance(statement, ast.Call) and getattr(statement.func, "attr", "") == "append" and statement.args:
                value, more = statement.args[0], ".detach()"
            else:
                continue
            if dotted(value) == loss:
                end = module.span(value)[1]
                yield Match(*module.span(value), fix=Fix((Edit(end, end, more),)), note=_NOTE)


def _backwards(scope: ast.AST) -> list[ast.Call]:
    calls = (n for n in ast.walk(scope) if isinstance(n, ast.Call))
    return [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "backward"]


def _detached(module: Module, loop: Loop, loss: str) -> bool:
    """Whether the loop gives the name a detached value itself."""
    values = [
        module.text(n.value)
        for s in loop.body
        for n in ast.walk(s)
        if isinstance(n, ast.Assign) and loss in map(dotted, n.targets)
    ]
    return any(".detach()" in value or ".item()" in value for value in values)
