"""TPU114: a device number chosen by asking for CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import device_type_operand
from tools.code.cuda_calls import imported
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import DEVICE_WORD
from tools.code.module import Module
from tools.code.older import is_for_older
from tools.code.rewrite import CUDA_AVAILABLE, CURRENT, spell
from tools.rules.base import Invalid, Match, PythonRule


class ChoosePipelineDevice(PythonRule):
    """``device=0 if torch.cuda.is_available() else -1``, as Transformers pipelines take it, means the CPU elsewhere.

    The number stays on CUDA; elsewhere the accelerator itself is given, and -1 where there is none.

    Not covered: numbers that come from the command line.
    """

    ID = "TPU114"
    NAME = "choose-pipeline-device"
    FAMILY = "A"
    MESSAGE = "the device number is chosen by asking for CUDA alone; -1 means the CPU"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("A9",)
    VALID = (
        "import torch\ndevice = 0 if torch.cuda.is_available() else (torch.accelerator.current_accelerator() or -1)\n",
        "import torch\nworkers = 4 if torch.cuda.is_available() else -1\n",
    )
    INVALID = (
        Invalid(
            "import torch\npipe = pipeline('x', device=0 if torch.cuda.is_available() else -1)\n",
            "import torch\npipe = pipeline('x', device=0 if torch.cuda.is_available() "
            "else (torch.accelerator.current_accelerator() or -1))\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields choices between 0 and -1 where a device is meant."""
        for choice in module.nodes(ast.IfExp):
            test = choice.test
            if not (isinstance(test, ast.Call) and module.qualify(test.func) == CUDA_AVAILABLE):
                continue
            if _number(choice.body) == 0 and _number(choice.orelse) == -1 and _is_device(module, choice):
                if not on_cuda_path(module, choice):
                    yield Match(*module.span(choice), fix=_fix(module, choice))


def _fix(module: Module, choice: ast.IfExp) -> Fix:
    if not is_for_older(module):
        return imported(module, [module.replace(choice.orelse, f"({spell(module, CURRENT)}() or -1)")], CURRENT)
    name, edits = device_type_operand(module, choice)
    return Fix((module.replace(choice.orelse, f'({name} if {name} != "cpu" else -1)'), *edits))


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _is_device(module: Module, choice: ast.IfExp) -> bool:
    parent = module.parent(choice)
    if isinstance(parent, ast.keyword):
        return bool(DEVICE_WORD.search(parent.arg or ""))
    if isinstance(parent, ast.Assign):
        return any(DEVICE_WORD.search(dotted(target) or "") for target in parent.targets)
    return False
