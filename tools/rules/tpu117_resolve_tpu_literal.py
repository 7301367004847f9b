"""TPU117: the literal ``"tpu"`` where a module is loaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.literals import means_device
from tools.code.module import Module, string
from tools.code.rewrite import device_type
from tools.rules.base import Invalid, Match, PythonRule

_TPU = re.compile(r"tpu(:0)?")
_TOP = 'DEVICE_TYPE = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"\n'


class ResolveTpuLiteral(PythonRule):
    """``torch.device("tpu")`` at module level raises as soon as the file is loaded on a machine without a TPU.

    TorchTPU registers the device only where there is one, so tests and tools on a laptop cannot import the file.

    The device is resolved through ``torch.accelerator``, which is the TPU where there is one.

    Not covered: literals inside functions, which are reached only when asked for.
    """

    ID = "TPU117"
    NAME = "resolve-tpu-literal"
    FAMILY = "A"
    MESSAGE = "torch.device('tpu') raises on a machine without a TPU as soon as the file is loaded"
    WHOLE_WORDS = True
    TRIGGERS = ('"tpu', "'tpu")
    COVERS = ("A4", "A5")
    VALID = (
        "import torch\ndef f(x):\n    return x.to(torch.device('tpu'))\n",
        "if kind == 'tpu':\n    pass\n",
        "import torch\ndevice = 'tpu'\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\ndevice = torch.device('tpu')\n",
            f"import torch\n\n{_TOP}\ndevice = torch.device(DEVICE_TYPE)\n",
        ),
        Invalid(
            "import torch\n\nx = torch.ones(2, device='tpu:0')\n",
            f"import torch\n\n{_TOP}\nx = torch.ones(2, device=DEVICE_TYPE)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields literals that PyTorch reads as a device while the module is loaded."""
        for node in module.nodes(ast.Constant):
            if not _TPU.fullmatch(string(node) or "") or not means_device(module, node):
                continue
            if module.function(node) is None and _read_by_torch(module, node) and not _asked_for(module, node):
                name, edits = device_type(module, node)
                yield Match(*module.span(node), fix=Fix((module.replace(node, name), *edits)))


def _read_by_torch(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    call = module.parent(parent) if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call):
        return False
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    return is_move or (module.qualify(call.func) or "").startswith("torch.")


def _asked_for(module: Module, node: ast.AST) -> bool:
    """Whether an ``if`` or ``try`` around the literal decides about it."""
    return any(isinstance(a, ast.If | ast.IfExp | ast.Try) for a in module.ancestors(node))
