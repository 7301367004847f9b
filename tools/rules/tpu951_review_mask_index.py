"""TPU951: boolean masks as indices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import argument, first_in_functions, spread
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Valid

_MASK = re.compile(r"(?i)(^|_)(mask|masked|active|valid|keep)s?$|(^|_)mask(_|$)")
_EXPORTED = re.compile(r"(?i)export|onnx|coreml|openvino|tflite")
_LOSS = ("torch.nn.functional.cross_entropy",)
_NOTE = (
    "torch.where(mask, new, old) keeps the shape; a loss can be multiplied by the mask and divided by its sum, "
    "or its unwanted labels set to ignore_index"
)
_NOTE_LOSS = "assumes a mean over the kept labels, which is the same sum in another order"


class ReviewMaskIndex(PythonRule):
    """``x[mask]`` in a model has a size that depends on the data, so a TPU waits for it and compiles for each size.

    For a loss the unwanted labels can be set to ``ignore_index`` instead: ``F.cross_entropy(logits[mask], labels[mask])``
    is rewritten so, unsafe because sums change in the last digit. Other masks in ``forward`` and in training losses are
    reported; ``x[mask] = value`` and writes of image features into token embeddings too.

    One finding a method. Only names that say they are masks, in methods of modules, count; modules for export are left.
    """

    ID = "TPU951"
    NAME = "review-mask-index"
    FAMILY = "J"
    GRADE = Grade.ADVICE
    MESSAGE = "the size of what a boolean mask selects depends on the data; a TPU compiles for each size"
    TESTS = False
    TRIGGERS = ("mask]", "masks]", "active]", "valid]", "keep]", "masked_select(", "masked_scatter(")
    REQUIRES = ("torch",)
    PATTERN = r"\[(\w+\.)*\w*(mask|masked|active|valid|keep)s?\]|masked_(select|scatter)\("
    COVERS = ("J2", "J3", "J5")
    VALID = (
        Valid(
            "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, x, mask):\n        return x[mask]\n",
            "lib/exporter.py",
        ),
        "import torch\n\ndef clean(x, mask):\n    return x[mask]\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, x, i):\n        return x[i]\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, x, mask):\n        return torch.where(mask, x, 0)\n",
        "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, kw):\n        return kw['mask'], self.masks[0]\n",
    )
    INVALID = (
        Invalid(
            "import torch.nn.functional as F\nloss = F.cross_entropy(logits[mask], labels[mask])\n",
            "import torch.nn.functional as F\n"
            "loss = F.cross_entropy(logits.flatten(0, -2), labels.masked_fill(~mask, -100).flatten())\n",
            unsafe=True,
        ),
        Invalid(
            "import torch\n\nclass M(torch.nn.Module):\n    def forward(self, x, image_mask, features):\n"
            "        x[image_mask] = features\n        return x.masked_scatter(image_mask, features)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields losses of masked values, and masks in methods of modules."""
        done: set[ast.AST] = set()
        for call in module.calls(*_LOSS):
            values = call.args[:2]
            if len(values) == 2 and all(_masked(value) for value in values) and not on_cuda_path(module, call):
                done.update(values)
                fix = _without_mask(module, call)
                grade = Grade.UNSAFE if fix else None
                yield Match(*module.span(call), fix=fix, grade=grade, note=_NOTE_LOSS if fix else _NOTE)
        for node in first_in_functions(module, _selections(module, done)):
            yield Match(*module.span(node), note=_NOTE)


def _selections(module: Module, done: set[ast.AST]) -> Iterator[ast.expr]:
    """What a mask selects, or is written to, in methods of modules."""
    for node in module.nodes(ast.Subscript, ast.Call):
        if isinstance(node, ast.Subscript):
            wanted = node not in done and _masked(node)
        else:
            wanted = isinstance(node.func, ast.Attribute) and node.func.attr in ("masked_select", "masked_scatter")  # type: ignore[attr-defined]
        if wanted and _in_forward(module, node) and not on_cuda_path(module, node):
            yield node


def _masked(node: ast.expr) -> bool:
    """Whether a node is indexed by a single name that says it is a mask."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name | ast.Attribute):
        return False
    name = dotted(node.slice)
    return name is not None and _MASK.search(name.rpartition(".")[2]) is not None


def _in_forward(module: Module, node: ast.AST) -> bool:
    function = module.function(node)
    holder = module.parent(function) if function is not None else None
    if not isinstance(function, ast.FunctionDef) or not isinstance(holder, ast.ClassDef):
        return False
    bases = [dotted(base) or "" for base in holder.bases]
    model = any(base.rpartition(".")[2] == "Module" or base.endswith(("Model", "Layer", "Block")) for base in bases)
    return function.name == "forward" and model and not _EXPORTED.search(f"{module.source.relative} {holder.name}")


def _without_mask(module: Module, call: ast.Call) -> Fix | None:
    logits, labels = call.args[:2]
    assert isinstance(logits, ast.Subscript) and isinstance(labels, ast.Subscript)
    if len(call.args) != 2 or spread(call) or module.text(logits.slice) != module.text(labels.slice):
        return None
    if any(k.arg not in ("weight", "label_smoothing", "reduction") for k in call.keywords):
        return None
    reduction = argument(call, "reduction")
    if keyword(call, "reduction") and not (isinstance(reduction, ast.Constant) and reduction.value in ("mean", "sum")):
        return None
    if not dotted(logits.value) or not dotted(labels.value):
        return None
    chosen = f"{module.text(labels.value)}.masked_fill(~{module.text(labels.slice)}, -100).flatten()"
    edits: list[Edit] = [
        module.replace(logits, f"{module.text(logits.value)}.flatten(0, -2)"),
        module.replace(labels, chosen),
    ]
    return Fix(tuple(edits))
