"""TPU994: the most likely class taken from probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SOFTMAX = ("torch.softmax", "torch.nn.functional.softmax", "torch.nn.functional.log_softmax", "torch.log_softmax")
_NOTE = "the order of logits is that of their probabilities; only ties that rounding makes are decided otherwise"


class CompareLogits(PythonRule):
    """``F.softmax(logits, dim=-1).argmax(-1)`` compares probabilities, which in bfloat16 are often equal.

    ``logits.argmax(-1)`` gives the class that really is first. Where probabilities were equal the answer changes, hence
    unsafe.

    Not covered: probabilities in variables, and sampling.
    """

    ID = "TPU994"
    NAME = "compare-logits"
    FAMILY = "O"
    GRADE = Grade.UNSAFE
    MESSAGE = "low precision makes probabilities equal that are not; compare the logits"
    TESTS = False
    TRIGGERS = ("softmax(",)
    PATTERN = r"softmax\([^\n]*\)\.argmax\(|argmax\([^\n]*softmax\("
    COVERS = ("O5",)
    VALID = (
        "import torch\np = torch.softmax(x, dim=-1)\ni = x.argmax(-1)\n",
        "import torch\ni = torch.multinomial(torch.softmax(x, dim=-1), 1)\n",
    )
    INVALID = (
        Invalid(
            "import torch.nn.functional as F\ni = F.softmax(logits, dim=-1).argmax(dim=-1)\n",
            "i = logits.argmax(dim=-1)\n",
            unsafe=True,
        ),
        Invalid(
            "import torch\ni = torch.argmax(torch.softmax(net(x), dim=1), dim=1)\n",
            "import torch\ni = torch.argmax(net(x), dim=1)\n",
            unsafe=True,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields softmaxes whose only use is argmax."""
        for call in module.nodes(ast.Call):
            logits = _logits(module, call)
            if logits is None or not _only_compared(module, call) or on_cuda_path(module, call):
                continue
            text = module.text(logits)
            loose = not isinstance(logits, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
            text = f"({text})" if loose else text
            yield Match(*module.span(call), fix=Fix((module.replace(call, text),)), note=_NOTE)


def _logits(module: Module, call: ast.Call) -> ast.expr | None:
    if module.qualify(call.func) in _SOFTMAX and call.args:
        return call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("softmax", "log_softmax"):
        plain = module.qualify(call.func) is None and len(call.args) + len(call.keywords) == 1
        return call.func.value if plain and string(call.func.value) is None else None
    return None


def _only_compared(module: Module, call: ast.Call) -> bool:
    """Whether the probabilities go into argmax along a dimension, and nowhere else."""
    parent = module.parent(call)
    if isinstance(parent, ast.Attribute) and parent.attr == "argmax":
        outer = module.parent(parent)
        return isinstance(outer, ast.Call) and bool(outer.args or outer.keywords)
    return (
        isinstance(parent, ast.Call)
        and module.qualify(parent.func) == "torch.argmax"
        and parent.args[0] is call
        and len(parent.args) + len(parent.keywords) > 1
    )
