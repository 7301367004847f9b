"""TPU991: the limit of another dtype."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_FILLS = frozenset({"masked_fill", "masked_fill_"})
_FLOATS = ("torch.float32", "torch.float")
_NOTE = (
    "assumes that what is filled is what the limit is for; in float16 and bfloat16 other numbers come out, not infinity"
)


class TakeLimitOfDtype(PythonRule):
    """``scores.masked_fill(mask, torch.finfo(torch.float32).min)`` with scores in bfloat16.

    The number does not fit bfloat16: on the CPU it is minus infinity, and a row of nothing else gives NaN; torch_tpu
    refuses it. ``torch.finfo(scores.dtype).min`` fits whatever the scores are. For float32 scores nothing changes; for
    others the numbers do, hence unsafe.

    Fixed where the filled tensor is a name; others are reported.
    """

    ID = "TPU991"
    NAME = "take-limit-of-dtype"
    FAMILY = "O"
    GRADE = Grade.UNSAFE
    MESSAGE = "the smallest float32 is outside bfloat16, and becomes infinity or an error"
    TRIGGERS = ("finfo(",)
    PATTERN = r"finfo\( *torch\.float(32)? *\)"
    COVERS = ("O2",)
    VALID = (
        "import torch\ns = s.masked_fill(m, torch.finfo(s.dtype).min)\n",
        "import torch\nlow = torch.finfo(torch.float32).min\n",
    )
    INVALID = (
        Invalid(
            "import torch\ns = scores.masked_fill(mask, torch.finfo(torch.float32).min)\n",
            "import torch\ns = scores.masked_fill(mask, torch.finfo(scores.dtype).min)\n",
            unsafe=True,
        ),
        Invalid("import torch\ns = f(x).masked_fill(m, torch.finfo(torch.float).min)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields limits of float32 that fill another tensor."""
        for call in module.calls("torch.finfo"):
            if len(call.args) != 1 or module.qualify(call.args[0]) not in _FLOATS or on_cuda_path(module, call):
                continue
            filled = _filled(module, call)
            if filled is None:
                continue
            name = dotted(filled)
            fix = Fix((module.replace(call.args[0], f"{name}.dtype"),)) if name else None
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=_NOTE)


def _filled(module: Module, call: ast.Call) -> ast.expr | None:
    """The tensor that the limit is filled into."""
    limit = module.parent(call)
    fill = module.parent(limit) if isinstance(limit, ast.Attribute) else None
    if isinstance(fill, ast.UnaryOp):
        fill = module.parent(fill)
    if isinstance(fill, ast.Call) and isinstance(fill.func, ast.Attribute) and fill.func.attr in _FILLS:
        return fill.func.value
    return None
