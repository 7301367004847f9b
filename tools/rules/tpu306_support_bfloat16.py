"""TPU306: bfloat16 taken to be a matter of CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.edits import Fix
from tools.guards import on_cuda_path
from tools.module import Module
from tools.rewrite import AVAILABLE, cuda_test, import_edits, spell
from tools.rules.base import Invalid, Match, PythonRule

_ASKED = "torch.cuda.is_bf16_supported"


class SupportBfloat16(PythonRule):
    """``torch.cuda.is_bf16_supported()`` is False, silently, wherever CUDA is absent; a TPU then gets float16.

    The question is widened: on CUDA it is CUDA's answer, with any other accelerator yes, and on the CPU the old no.

    Not covered: a choice by compute capability.
    """

    ID = "TPU306"
    NAME = "support-bfloat16"
    FAMILY = "C"
    MESSAGE = "asks CUDA alone whether bfloat16 is there; a TPU would be given float16"
    TRIGGERS = ("is_bf16_supported",)
    COVERS = ("C2", "C10", "C11")
    VALID = (
        "import torch\nok = torch.cuda.is_bf16_supported() or "
        "(torch.accelerator.is_available() and not torch.cuda.is_available())\n",
        "import torch\nif torch.cuda.is_available():\n    half = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.half\n",
        "import torch\nprint(f'bf16: {torch.cuda.is_bf16_supported()}')\n",
    )
    INVALID = (
        Invalid(
            "import torch\n"
            "dtype = 'bfloat16' if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else 'float16' # note\n",
            "import torch\ndtype = 'bfloat16' if torch.cuda.is_bf16_supported() or "
            "(torch.accelerator.is_available() and not torch.cuda.is_available()) else 'float16' # note\n",
        ),
        Invalid(
            "import torch\nargs = Arguments(fp16=not torch.cuda.is_bf16_supported(), bf16=torch.cuda.is_bf16_supported())\n",
            "import torch\nargs = Arguments(fp16=not (torch.cuda.is_bf16_supported() or "
            "(torch.accelerator.is_available() and not torch.cuda.is_available())), "
            "bf16=torch.cuda.is_bf16_supported() or (torch.accelerator.is_available() and not torch.cuda.is_available()))\n",
            count=2,
        ),
        Invalid(
            "import torch\nif torch.cuda.is_bf16_supported():\n    dtype = torch.bfloat16\nelse:\n    dtype = torch.float16\n",
            "import torch\nif torch.cuda.is_bf16_supported() or "
            "(torch.accelerator.is_available() and not torch.cuda.is_available()):\n    dtype = torch.bfloat16\n"
            "else:\n    dtype = torch.float16\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields questions about bfloat16 that decide something off the CUDA-only path."""
        for call in module.calls(_ASKED):
            question = _question(module, call)
            if on_cuda_path(module, question) or _widened(module, question) or not _decides(module, question):
                continue
            asked = module.text(call)
            text = f"{asked} or ({spell(module, AVAILABLE)}() and not {cuda_test(module)})"
            if isinstance(module.parent(question), ast.UnaryOp | ast.BoolOp):
                text = f"({text})"
            start, end = module.span(question)
            yield Match(start, end, fix=Fix((module.replace(question, text), *import_edits(module))))


def _question(module: Module, call: ast.Call) -> ast.expr:
    """The call, or the whole of ``torch.cuda.is_available() and <call>``, which says no more than the call."""
    parent = module.parent(call)
    if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And) and len(parent.values) == 2:
        first = parent.values[0]
        if isinstance(first, ast.Call) and module.qualify(first.func) == "torch.cuda.is_available":
            return parent
    return call


def _widened(module: Module, question: ast.expr) -> bool:
    parent = module.parent(question)
    if not isinstance(parent, ast.BoolOp) or not isinstance(parent.op, ast.Or):
        return False
    return any(f"not {cuda_test(module)}" in module.text(v) for v in parent.values if v is not question)


def _decides(module: Module, question: ast.expr) -> bool:
    """Whether the answer is used for more than a message."""
    return not any(isinstance(a, ast.JoinedStr | ast.FormattedValue) for a in module.ancestors(question))
