"""Lets the optimizer update all parameters in one program."""

from __future__ import annotations

import ast

from tools.code.calls import add_keyword, on_cpu_or_cuda, spread
from tools.code.edits import Edit
from tools.code.module import Module, keyword
from tools.transforms.base import Proposal, Subject, Transform

_FUSED = tuple(f"torch.optim.{name}" for name in ("Adam", "AdamW", "SGD", "Adagrad"))
_CHOICES = ("fused", "foreach", "capturable", "differentiable")


class FuseOptimizer(Transform):
    """``fused=True`` makes one program of an update that else takes a program for each of its steps.

    The CPU and CUDA keep their default. A condition such as ``use_fused = ... and device_type == "cuda"`` is widened
    to every device but the CPU.
    """

    ID = "fuse-optimizer"
    TITLE = "the fused optimizer"
    ORDER = 15

    def propose(self, subject: Subject) -> Proposal | None:
        """See `Transform`."""
        if any("_fused_" in entry["op"] for entry in subject.step["operators"]):
            return None
        for path, module in subject.on_path():
            edits = _widened(module) or _added(module)
            if edits:
                title = "use the fused optimizer off the CPU and CUDA"
                return Proposal(title, subject.edited(path, edits))
        return None


def _added(module: Module) -> list[Edit]:
    for call in module.calls(*_FUSED):
        if not spread(call) and not any(keyword(call, name) for name in _CHOICES):
            test, edits = on_cpu_or_cuda(module, call)
            return [add_keyword(module, call, f"fused=None if {test} else True"), *edits]
    return []


def _widened(module: Module) -> list[Edit]:
    """The comparison with "cuda" in what decides on a fused optimizer."""
    for statement in module.nodes(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Name) and "fused" in target.id:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and _is_cuda(node):
                    return [module.replace(node, f'{module.text(node.left)} != "cpu"')]
    return []


def _is_cuda(node: ast.Compare) -> bool:
    side = node.comparators[0]
    return isinstance(side, ast.Constant) and side.value == "cuda"
