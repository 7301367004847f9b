"""TPU957: a compiled training step with a learning rate that changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule


class KeepRateInTensor(PythonRule):
    """A function under ``torch.compile`` that calls ``optimizer.step()``.

    A learning rate that is a Python number is a constant of the compiled program: each value of a schedule compiles the
    step again. As a tensor it is an input. So is the step counter with ``capturable=True``, which Adam and its kin need for
    a step compiled for a TPU.

    Reported at the compiled function; whether the rate changes, and how, is often decided elsewhere.
    """

    ID = "TPU957"
    NAME = "keep-rate-in-tensor"
    FAMILY = "J"
    GRADE = Grade.ADVICE
    MESSAGE = "the learning rate is a constant of this compiled step; each new value compiles it again"
    TESTS = False
    TRIGGERS = ("torch.compile", ".step(")
    REQUIRES = ("torch.compile", ".step(")
    COVERS = ("J13",)
    VALID = (
        "import torch\n\n@torch.compile\ndef f(x):\n    return model(x)\n\nf(x)\noptimizer.step()\n",
        "import torch\nmodel = torch.compile(model)\noptimizer.step()\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\n@torch.compile(dynamic=False)\ndef train(x):\n    model(x).sum().backward()\n    optimizer.step()\n",
            None,
        ),
        Invalid(
            "import torch\n\ndef train(x):\n    opt.step()\n\ntrain = torch.compile(train)\nstep = torch.compile(opt.step)\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields compiled functions that step an optimizer."""
        note = "give lr=torch.tensor(rate) and capturable=True, or leave optimizer.step() outside"
        stepping = {f.name for f in module.nodes(ast.FunctionDef) if _steps(f)}
        for use in module.references("torch.compile"):
            parent = module.parent(use)
            call = parent if isinstance(parent, ast.Call) and parent.func is use else None
            holder = module.parent(call) if call is not None else parent
            place = call if call is not None else use
            if on_cuda_path(module, use):
                continue
            if isinstance(holder, ast.FunctionDef) and place in holder.decorator_list:
                if holder.name in stepping:
                    yield Match(*module.span(place), note=note)
            elif call is not None and call.args and _given(call.args[0], stepping):
                yield Match(*module.span(call), note=note)


def _steps(function: ast.FunctionDef) -> bool:
    return any(_is_step(n.func) for n in ast.walk(function) if isinstance(n, ast.Call))


def _is_step(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr != "step":
        return False
    owner = function.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return "opt" in name.lower()


def _given(value: ast.expr, stepping: set[str]) -> bool:
    return (isinstance(value, ast.Name) and value.id in stepping) or _is_step(value)
