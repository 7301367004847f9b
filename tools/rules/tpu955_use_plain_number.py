"""TPU955: a scalar tensor of the CPU in arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = "assumes that the other side is a tensor"


class UsePlainNumber(PythonRule):
    """``x * torch.tensor(2.0)`` makes a CPU tensor and sends it to the device in every step.

    The number does the same: a scalar tensor takes part in type promotion as a number of its kind does. Unsafe because the
    other side could be a number itself, and the result no tensor any more.

    Not covered: scalars kept in variables.
    """

    ID = "TPU955"
    NAME = "use-plain-number"
    FAMILY = "J"
    GRADE = Grade.UNSAFE
    MESSAGE = "this makes a CPU tensor and copies it to the device each time"
    TRIGGERS = ("torch.tensor(",)
    PATTERN = r"[-+*/] *=? *torch\.tensor\( *-?[\d.]"
    COVERS = ("J9",)
    VALID = (
        "import torch\nx = torch.tensor(2.0)\n",
        "import torch\ny = x * torch.tensor(2.0, device=x.device)\n",
        "import torch\ny = x * torch.tensor([2.0])\n",
        "import torch\ny = torch.tensor(2.0) * torch.tensor(3.0)\n",
    )
    INVALID = (
        Invalid("import torch\nx[0:-1] *= torch.tensor(2)\n", "import torch\nx[0:-1] *= 2\n", unsafe=True),
        Invalid("import torch\ny = x + torch.tensor(-0.5)\n", "import torch\ny = x + -0.5\n", unsafe=True),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields scalar tensors that are one side of an operation."""
        for call in module.calls("torch.tensor"):
            parent = module.parent(call)
            if not isinstance(parent, ast.BinOp | ast.AugAssign) or call.keywords or len(call.args) != 1:
                continue
            other = parent.target if isinstance(parent, ast.AugAssign) else _other(parent, call)
            plain = isinstance(other, ast.Name | ast.Attribute | ast.Subscript)
            if plain and _number(call.args[0]) and not on_cuda_path(module, call):
                fix = Fix((module.replace(call, module.text(call.args[0])),))
                yield Match(*module.span(call), fix=fix, note=_NOTE)


def _other(operation: ast.BinOp, call: ast.Call) -> ast.expr:
    return operation.left if operation.right is call else operation.right


def _number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        value = value.operand
    return (
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    )
