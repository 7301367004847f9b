"""TPU954: values read from the device in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.code.training_loops import each_step, steps
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_READS = frozenset({"item", "tolist", "numpy"})
_TESTS = frozenset({"torch.isnan", "torch.isinf", "torch.isfinite", "torch.any", "torch.all", "torch.allclose"})


class ReviewValueRead(PythonRule):
    """``loss.item()`` in every training step makes the program wait for the device at every step.

    So does ``float(loss)``, ``if torch.isnan(loss):`` and an f-string. On a TPU the queue then runs dry between steps.
    Keep the value on the device, and read it every so many steps.

    One finding a loop, at the first read that happens in each turn. Reads under a condition (``if step % 100 == 0``) are
    fine. Reported only.
    """

    ID = "TPU954"
    NAME = "review-value-read"
    FAMILY = "J"
    GRADE = Grade.ADVICE
    MESSAGE = "this waits for the device in every step"
    TESTS = False
    TRIGGERS = (".backward(",)
    PATTERN = r"\.item\(\)|isnan\(|isfinite\(|isinf\(|\bfloat\(loss"
    COVERS = ("J8",)
    VALID = (
        "for x in data:\n    loss = f(x)\n    loss.backward()\n    if step % 10 == 0:\n        print(loss.item())\n",
        "for x in data:\n    total += f(x).item()\n",
        "for x in data:\n    loss.backward()\nprint(loss.item())\n",
    )
    INVALID = (
        Invalid(
            "for x in data:\n    loss = f(x)\n    loss.backward()\n    total += loss.item()\n    print(loss.item())\n",
            None,
        ),
        Invalid("import torch\nfor x in data:\n    loss.backward()\n    if torch.isnan(loss):\n        break\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first read of each training loop."""
        loops = {loop: call for call, _, loop in steps(module) if not on_cuda_path(module, call)}
        for loop in loops:
            first = next((call for call, asked in each_step(loop) if _reads(module, call, asked)), None)
            if first is not None:
                note = "keep the value on the device (detach()) and read it every so many steps"
                yield Match(*module.span(first), note=note)


def _reads(module: Module, call: ast.Call, asked: bool) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _READS:
        return not call.args
    if isinstance(function, ast.Name) and function.id in ("float", "int", "bool"):
        return len(call.args) == 1 and "loss" in (dotted(call.args[0]) or "")
    return asked and module.names.qualify(function) in _TESTS
