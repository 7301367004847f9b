"""TPU958: tensors made on the CPU and moved at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import add_keyword, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.rules.base import Invalid, Match, PythonRule

_EXACT = frozenset(
    f"torch.{name}" for name in ("zeros", "ones", "full", "eye", "empty", "tril_indices", "triu_indices")
)
_DEVICE = re.compile(r"[\w.]+\.device")


class MakeOnDevice(PythonRule):
    """``torch.zeros(n).to(x.device)`` makes a tensor on the CPU and copies it, in every forward pass.

    ``torch.zeros(n, device=x.device)`` makes it where it is needed, with the same values on every device.

    Only constructors whose values are exact everywhere count (``zeros``, ``ones``, ``full``, ``eye``, ``empty``, ``arange``
    of integers), and moves to the device of another tensor. Random numbers stay: the CPU draws others than the device.
    """

    ID = "TPU958"
    NAME = "make-on-device"
    FAMILY = "J"
    MESSAGE = "this tensor is made on the CPU and copied to the device each time"
    TRIGGERS = (".device)",)
    PATTERN = r"torch\.(zeros|ones|full|eye|empty|arange|tril_indices|triu_indices)\(.*\.to\([\w.]*\.device\b"
    COVERS = ("J17", "M9")
    VALID = (
        "import torch\nx = torch.randn(3).to(y.device)\n",
        "import torch\nx = torch.zeros(3, device=y.device)\n",
        "import torch\nx = torch.arange(0, 1, 0.1).to(y.device)\n",
        "import torch\nx = torch.zeros(3, requires_grad=True).to(y.device)\n",
        "import torch\nx = torch.zeros(3).to(y.dtype)\n",
        "import torch\nx = torch.zeros(3).to(y.device, non_blocking=True)\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\ndef forward(self, x):\n    return x + torch.arange(x.shape[1]).to(x.device)\n",
            "import torch\n\ndef forward(self, x):\n    return x + torch.arange(x.shape[1], device=x.device)\n",
        ),
        Invalid(
            "import torch\nmask = torch.zeros(2, 3, dtype=torch.bool).to(q.device)[None]\n",
            "import torch\nmask = torch.zeros(2, 3, dtype=torch.bool, device=q.device)[None]\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields moves of what was just made."""
        for call in module.nodes(ast.Call):
            function = call.func
            if (
                not isinstance(function, ast.Attribute)
                or function.attr != "to"
                or not isinstance(function.value, ast.Call)
            ):
                continue
            if len(call.args) != 1 or call.keywords or not _DEVICE.fullmatch(module.text(call.args[0])):
                continue
            made = function.value
            if _is_exact(module, made) and not on_cuda_path(module, call):
                end = module.span(call)[1]
                behind = module.span(made)[1]
                edits = (
                    add_keyword(module, made, f"device={module.text(call.args[0])}"),
                    Edit(behind, end, ""),
                )
                yield Match(*module.span(call), fix=Fix(edits))


def _is_exact(module: Module, call: ast.Call) -> bool:
    name = module.qualify(call.func)
    if spread(call) or any(keyword(call, k) for k in ("device", "requires_grad", "out", "pin_memory")):
        return False
    return name in _EXACT or (name == "torch.arange" and _whole(call))


def _whole(call: ast.Call) -> bool:
    """Whether a range is of integers: sizes, whole numbers and arithmetic of them without division."""
    kind = keyword(call, "dtype")
    if kind is not None and not (
        isinstance(kind.value, ast.Attribute) and kind.value.attr in ("long", "int64", "int", "int32")
    ):
        return False
    return all(_is_size(argument) for argument in call.args)


def _is_size(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int)
    if isinstance(value, ast.BinOp):
        return (
            isinstance(value.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv)
            and _is_size(value.left)
            and _is_size(value.right)
        )
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.Call):
        called = value.func
        return (isinstance(called, ast.Attribute) and called.attr in ("size", "numel")) or getattr(
            called, "id", ""
        ) == "len"
    return False
