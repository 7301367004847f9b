"""TPU205: bfloat16 chosen by asking CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import every_use, imported
from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import CUDA_AVAILABLE, accelerator_test, spell
from tools.rules.base import Invalid, Match, PythonRule

_NAMES = ("is_bf16_supported", "get_device_capability")


class DecideBfloat16(PythonRule):
    """``torch.cuda.is_bf16_supported()`` is false without CUDA, so a program takes float16 on a TPU.

    A TPU's native type is bfloat16. The answer stays the same on CUDA and on a machine without accelerator, and is yes on
    any other one.

    A test of the compute capability counts where it chooses between bfloat16 and another type.

    Not covered: answers that a function of the user's own hands on from a block that is for CUDA only.
    """

    ID = "TPU205"
    NAME = "decide-bfloat16"
    FAMILY = "B"
    MESSAGE = "bfloat16 is chosen by asking CUDA, which says no on a TPU although that is its native type"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "is_bf16_supported", "get_device_capability")
    REQUIRES = ("cuda",)
    COVERS = ("C1", "C2")
    VALID = (
        "import torch\nok = torch.accelerator.is_available() and "
        "(not torch.cuda.is_available() or torch.cuda.is_bf16_supported())\n",
        "import torch\nif torch.cuda.is_available():\n    ok = torch.cuda.is_bf16_supported()\n",
        "import torch\nbig = torch.cuda.get_device_capability()[0] >= 8\n",
    )
    INVALID = (
        Invalid(
            "import torch\ndtype = 'bfloat16' if torch.cuda.is_available() and torch.cuda.is_bf16_supported() "
            "else 'float16'  # or 'float32'\n",
            "import torch\ndtype = 'bfloat16' if torch.accelerator.is_available() and "
            "(not torch.cuda.is_available() or torch.cuda.is_bf16_supported()) else 'float16'  # or 'float32'\n",
        ),
        Invalid(
            "import torch\nuse = torch.cuda.is_bf16_supported()\n",
            "import torch\nuse = torch.accelerator.is_available() and "
            "(not torch.cuda.is_available() or torch.cuda.is_bf16_supported())\n",
        ),
        Invalid(
            "import torch\nif fast and not torch.cuda.is_bf16_supported():\n    dtype = torch.float16\n",
            "import torch\nif fast and not (torch.accelerator.is_available() and "
            "(not torch.cuda.is_available() or torch.cuda.is_bf16_supported())):\n    dtype = torch.float16\n",
        ),
        Invalid(
            "import torch\nd = torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16\n",
            "import torch\nd = torch.bfloat16 if torch.accelerator.is_available() and "
            "(not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] >= 8) else torch.float16\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields questions about bfloat16 that only a test for CUDA right beside them guards."""
        for node, name in every_use(module):
            if name in _NAMES:
                question = _question(module, node, name)
                if question is not None:
                    yield Match(*module.span(question), fix=_fix(module, question))


def _question(module: Module, node: ast.expr, name: str) -> ast.expr | None:
    """The boolean expression to replace: the call or comparison, with a test for CUDA in the same conjunction."""
    call = module.parent(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return None
    question: ast.expr = call
    if name == "get_device_capability":
        comparison = next((a for a in module.ancestors(call) if isinstance(a, ast.Compare)), None)
        if comparison is None or not _about_bfloat16(module, comparison):
            return None
        question = comparison
    parent = module.parent(question)
    if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
        before = parent.values[: parent.values.index(question)]
        if len(before) == 1 and _asks_for_cuda(module, before[0]) and len(parent.values) == 2:
            return None if on_cuda_path(module, parent) else parent
    return None if on_cuda_path(module, question) else question


def _asks_for_cuda(module: Module, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and module.qualify(test.func) == CUDA_AVAILABLE


def _about_bfloat16(module: Module, comparison: ast.Compare) -> bool:
    """Whether the comparison is the test of a choice for bfloat16, or is kept under such a name."""
    for holder in module.ancestors(comparison):
        if isinstance(holder, ast.IfExp):
            return "bf" in module.text(holder.body).lower()
        if isinstance(holder, ast.If):
            return len(holder.body) == 1 and "bf" in module.text(holder.body[0]).lower()
        if isinstance(holder, ast.Assign):
            return (
                "bf16" in module.text(holder.targets[0]).lower() or "bfloat" in module.text(holder.targets[0]).lower()
            )
        if isinstance(holder, ast.stmt):
            return False
    return False


def _fix(module: Module, question: ast.expr) -> Fix:
    asked = module.text(question.values[1] if isinstance(question, ast.BoolOp) else question)
    test, edits = accelerator_test(module, question)
    text = f"{test} and (not {spell(module, CUDA_AVAILABLE)}() or {asked})"
    if isinstance(module.parent(question), ast.UnaryOp | ast.BoolOp | ast.Compare | ast.Attribute | ast.Tuple):
        text = f"({text})"
    return imported(module, [module.replace(question, text), *edits], CUDA_AVAILABLE)
