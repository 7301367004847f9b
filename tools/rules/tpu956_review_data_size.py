"""TPU956: functions whose result has a size that depends on the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import first_in_functions
from tools.code.guards import assigned, dotted, on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_FUNCTIONS = {
    "torch.unique": "a fixed number of classes, counted with one_hot(...).sum()",
    "torch.unique_consecutive": "a fixed number of classes",
    "torch.nonzero": "torch.where(mask, new, old), or argmax of the mask for one index",
    "torch.argwhere": "torch.where(mask, new, old)",
    "torch.masked_select": "torch.where(mask, new, old)",
    "torch.bincount": "bincount(..., minlength=classes) on the CPU, or one_hot(...).sum()",
}
_METHODS = {"nonzero": _FUNCTIONS["torch.nonzero"], "unique": _FUNCTIONS["torch.unique"]}
_HOST = re.compile(r"Transform|Sampler|Dataset|Collat|Augment|Export")
_HOST_FILE = re.compile(r"(^|/)(transforms?|datasets?|loader|data|export\w*|onnx)([/.]|$)")
_PLACES = frozenset(
    {"forward", "step", "update", "compute", "training_step", "validation_step", "__call__", "compute_loss"}
)


class ReviewDataSize(PythonRule):
    """``torch.nonzero``, ``torch.unique`` and ``bincount`` in a model, a metric or a sampler's step.

    How large the result is only the data tells, so a TPU waits for it, and what follows is compiled for each size.

    Transforms, samplers, data sets and code for export work on the host and are left. Values that a call makes on the CPU are fine. Only methods called ``forward``, ``step``, ``update``, ``compute`` and the like of classes count; elsewhere such code
    runs once. ``nonzero(as_tuple=True)`` counts too, ``bincount`` not with ``minlength``. One finding a method. Reported only.
    """

    ID = "TPU956"
    NAME = "review-data-size"
    FAMILY = "J"
    GRADE = Grade.ADVICE
    MESSAGE = "the size of the result depends on the data; a TPU waits for it and compiles for each size"
    TESTS = False
    TRIGGERS = ("nonzero(", "unique(", "unique_consecutive(", "argwhere(", "masked_select(", "bincount(")
    REQUIRES = ("torch",)
    PATTERN = r"def (forward|step|update|compute|training_step|validation_step|__call__|compute_loss)\("
    COVERS = ("J1", "J10")
    VALID = (
        "import numpy, torch\nclass M:\n    def forward(self, p):\n        p = torch.from_numpy(numpy.array(p))\n"
        "        return torch.nonzero(p[1:] < 3)\n",
        "import torch\nids = torch.unique(labels)\n",
        "import torch\nclass M:\n    def forward(self, xs):\n        return torch.unique(torch.tensor([len(x) for x in xs]))\n",
        "import torch\nclass RandomSplit(BaseTransform):\n    def forward(self, data):\n        return data.mask.nonzero()\n",
        "import torch\nclass M:\n    def update(self, x):\n        return torch.bincount(x, minlength=10)\n",
        "import numpy as np\nimport torch\nclass M:\n    def forward(self, x):\n        return np.unique(x)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nclass Scheduler:\n    def step(self, t):\n        i = (self.timesteps == t).nonzero().item()\n"
            "        return torch.unique(t)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields such calls in methods that run at every step."""
        for call in first_in_functions(module, _sized_by_data(module)):
            yield Match(*module.span(call), note=f"use {_advice(module, call)}")


def _sized_by_data(module: Module) -> Iterator[ast.Call]:
    for call in module.nodes(ast.Call):
        if _advice(module, call) is None or not _in_step(module, call) or on_cuda_path(module, call):
            continue
        if keyword(call, "minlength") is None and not _of_host_tensor(module, call):
            yield call


def _advice(module: Module, call: ast.Call) -> str | None:
    name = module.qualify(call.func)
    if name is not None:
        return _FUNCTIONS.get(name)
    function = call.func
    if not isinstance(function, ast.Attribute) or call.args:
        return None
    value = function.value
    tensor = isinstance(value, ast.Compare | ast.BinOp) or "mask" in (dotted(value) or "")
    return _METHODS.get(function.attr) if tensor or function.attr == "nonzero" else None


def _in_step(module: Module, node: ast.AST) -> bool:
    function = module.function(node)
    if not isinstance(function, ast.FunctionDef) or function.name not in _PLACES:
        return False
    holder = module.parent(function)
    return isinstance(holder, ast.ClassDef) and not _on_host(module, holder)


def _on_host(module: Module, holder: ast.ClassDef) -> bool:
    """Whether a class prepares data on the host: a transform, a sampler or a data set, or one for export."""
    names = [holder.name, *(module.text(base) for base in holder.bases)]
    return any(_HOST.search(name) for name in names) or _HOST_FILE.search(module.source.relative) is not None


def _of_host_tensor(module: Module, call: ast.Call) -> bool:
    """Whether the argument is made on the CPU, in the call itself or above it in the function."""
    made: ast.expr | None = call.args[0] if call.args else None
    while isinstance(made, ast.Compare | ast.Subscript):
        made = made.left if isinstance(made, ast.Compare) else made.value
    if isinstance(made, ast.Name):
        values = assigned(module, made)
        last = [v for v in values if v.lineno < call.lineno][-1:]
        return bool(last) and isinstance(last[0], ast.Call) and _is_host(module, last[0])
    return isinstance(made, ast.Call) and _is_host(module, made)


def _is_host(module: Module, made: ast.Call) -> bool:
    plain = module.qualify(made.func) in ("torch.tensor", "torch.from_numpy") and keyword(made, "device") is None
    return plain or (isinstance(made.func, ast.Attribute) and made.func.attr == "cpu")
