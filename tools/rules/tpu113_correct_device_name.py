"""TPU113: ``"gpu"`` as a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.literals import means_device
from tools.code.module import Module, string
from tools.code.rewrite import device_type
from tools.rules.base import Invalid, Match, PythonRule

_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class CorrectDeviceName(PythonRule):
    """``torch.device("gpu")`` and ``.to("gpu")`` name no device of PyTorch and raise everywhere.

    Not covered: ``"gpu"`` in configuration of other libraries, where it may be right.
    """

    ID = "TPU113"
    NAME = "correct-device-name"
    FAMILY = "A"
    MESSAGE = "PyTorch has no device called 'gpu'"
    WHOLE_WORDS = True
    TRIGGERS = ("gpu",)
    COVERS = ("A10",)
    VALID = ("trainer = Trainer(accelerator='gpu')\n", "import jax\njax.devices('gpu')\n", "device = 'gpu'\n")
    INVALID = (
        Invalid(
            "import torch\n\nx = x.to('gpu')\n",
            f"import torch\n\n{_TOP}\nx = x.to(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\n\nd = torch.device('gpu')\n",
            f"import torch\n\n{_TOP}\nd = torch.device(DEVICE_TYPE)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the literal where PyTorch itself takes it as a device."""
        for node in module.nodes(ast.Constant):
            if string(node) == "gpu" and _taken_by_torch(module, node) and means_device(module, node):
                name, edits = device_type(module, node)
                yield Match(*module.span(node), fix=Fix((module.replace(node, name), *edits)))


def _taken_by_torch(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    call = module.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return False
    if (module.qualify(call.func) or "").startswith("torch."):
        return True
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to" and node in call.args
    return is_move and module.names.spelling("torch") is not None
