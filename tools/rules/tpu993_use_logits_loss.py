"""TPU993: binary cross-entropy of probabilities."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_LOSS = "torch.nn.functional.binary_cross_entropy"
_LOGITS = "torch.nn.functional.binary_cross_entropy_with_logits"
_SIGMOID = ("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit")
_NOTE = "give it logits: BCEWithLogitsLoss and binary_cross_entropy_with_logits stay finite in bfloat16"


class UseLogitsLoss(PythonRule):
    """``nn.BCELoss`` takes probabilities, and in bfloat16 a probability near 1 is 1, whose loss is infinite or NaN.

    ``F.binary_cross_entropy(torch.sigmoid(x), y)`` becomes the form with logits, the same value computed otherwise and
    therefore unsafe. Losses of probabilities computed elsewhere are reported.
    """

    ID = "TPU993"
    NAME = "use-logits-loss"
    FAMILY = "O"
    GRADE = Grade.ADVICE
    MESSAGE = "in bfloat16 the loss of a probability near 0 or 1 is infinite or NaN"
    TESTS = False
    TRIGGERS = ("BCELoss(", "binary_cross_entropy(")
    REQUIRES = ("torch",)
    COVERS = ("O4",)
    VALID = (
        "import torch.nn.functional as F\nloss = F.binary_cross_entropy_with_logits(x, y)\n",
        "loss = binary_cross_entropy(x, y)  # torch\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch.nn.functional as F\nloss = F.binary_cross_entropy(torch.sigmoid(x), y, reduction='sum')\n",
            "import torch\nimport torch.nn.functional as F\nloss = F.binary_cross_entropy_with_logits(x, y, reduction='sum')\n",
            unsafe=True,
        ),
        Invalid("import torch.nn as nn\ncriterion = nn.BCELoss()\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields losses of probabilities."""
        for call in module.calls(_LOSS, "torch.nn.BCELoss"):
            if on_cuda_path(module, call):
                continue
            fix = _with_logits(module, call) if module.qualify(call.func) == _LOSS else None
            yield Match(*module.span(call), fix=fix, grade=Grade.UNSAFE if fix else None, note=_NOTE)


def _with_logits(module: Module, call: ast.Call) -> Fix | None:
    given = call.args[0] if call.args else None
    if len(call.args) > 2 or keyword(call, "size_average") or not isinstance(given, ast.Call):
        return None
    if module.qualify(given.func) in _SIGMOID and len(given.args) == 1 and not given.keywords:
        logits = module.text(given.args[0])
    elif isinstance(given.func, ast.Attribute) and given.func.attr == "sigmoid" and not given.args:
        logits = module.text(given.func.value)
    else:
        return None
    edits: list[Edit] = [module.replace(call.func, spell(module, _LOGITS)), module.replace(given, logits)]
    return Fix(tuple(edits))
