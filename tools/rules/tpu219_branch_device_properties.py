"""TPU219: properties that only a CUDA device has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_api import API, handled_by
from tools.code.cuda_calls import calls, chain, elsewhere, guarded, imported, statement_of
from tools.code.edits import Fix
from tools.code.module import Module
from tools.code.rewrite import CUDA_AVAILABLE, cuda_test
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_BFLOAT = re.compile(r"(?i)bf16|bfloat16")


class BranchDeviceProperties(PythonRule):
    """``torch.cuda.get_device_capability()`` and ``get_device_properties()`` fail without CUDA.

    A comparison of the capability is false elsewhere, which is what code that asks for a CUDA feature means; a question
    about bfloat16 is TPU205's. A statement that only prints properties is kept for CUDA. What is computed from properties
    is left to a person.

    Not covered: properties kept in a variable; a capability kept in a variable of a file that speaks of bfloat16, because
    a TPU computes in it.
    """

    ID = "TPU219"
    NAME = "branch-device-properties"
    FAMILY = "B"
    GRADE = Grade.ADVICE
    MESSAGE = "only a CUDA device has these properties; the call fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "get_device_")
    REQUIRES = ("cuda",)
    COVERS = ("B13",)
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    p = torch.cuda.get_device_properties(0)\n",
        "import torch\nfast = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfast = torch.cuda.get_device_capability()[0] >= 8\n",
            "import torch\nfast = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8\n",
        ),
        Invalid(
            "import torch\nif torch.cuda.get_device_capability() >= (9, 0) and big:\n    f()\n",
            "import torch\nif (torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)) and big:\n    f()\n",
        ),
        Invalid(
            "import torch\nprint(torch.cuda.get_device_properties(0))\n",
            "import torch\nif torch.cuda.is_available():\n    print(torch.cuda.get_device_properties(0))\n",
        ),
        Invalid("import torch\nsms = torch.cuda.get_device_properties(0).multi_processor_count\n", None),
        Invalid(
            "import torch\nmajor, minor = torch.cuda.get_device_capability()\n",
            "import torch\nmajor, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields questions about properties off the CUDA-only path."""
        for call, name in calls(module, handled_by(self.ID)):
            whole = chain(module, call)
            fix = _fix(module, call, whole, name)
            grade, note = (Grade.SAFE, None) if fix else (None, API[name].note)
            yield Match(*module.span(whole), fix=fix, grade=grade, note=note)


def _fix(module: Module, call: ast.Call, whole: ast.expr, name: str) -> Fix | None:
    parent = module.parent(whole)
    text = module.source.text
    if name == "get_device_capability" and isinstance(parent, ast.Compare):
        return _and_cuda(module, parent)
    if (
        name == "get_device_capability"
        and isinstance(parent, ast.Assign)
        and whole is call
        and not _BFLOAT.search(text)
    ):
        return elsewhere(module, call, "(0, 0)")
    statement = statement_of(module, whole)
    if statement is None and isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "print":
        statement = statement_of(module, parent) if len(parent.args) == 1 else None
    return guarded(module, [statement])[statement] if statement else None


def _and_cuda(module: Module, comparison: ast.Compare) -> Fix:
    joined = f"{cuda_test(module)} and {module.text(comparison)}"
    if isinstance(module.parent(comparison), ast.BoolOp | ast.UnaryOp | ast.Compare):
        joined = f"({joined})"
    return imported(module, [module.replace(comparison, joined)], CUDA_AVAILABLE)
