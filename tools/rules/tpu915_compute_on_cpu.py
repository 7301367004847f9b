"""TPU915: operators that have kernels for the CPU and CUDA only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import spread
from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import parenthesised
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_VISION = {
    "nms": ("boxes", "scores"),
    "batched_nms": ("boxes", "scores", "idxs"),
    "roi_align": ("input", "boxes"),
    "roi_pool": ("input", "boxes"),
    "ps_roi_align": ("input", "boxes"),
    "ps_roi_pool": ("input", "boxes"),
    "deform_conv2d": ("input", "offset", "weight", "bias"),
}
_LINEAR = {
    "cholesky": ("A",),
    "det": ("A",),
    "eigvals": ("A",),
    "eigvalsh": ("A",),
    "matrix_exp": ("A",),
    "cross": ("input", "other"),
}
_TABLE = {
    **{f"torchvision.ops.{name}": tensors for name, tensors in _VISION.items()},
    **{f"torchvision.ops.boxes.{name}": _VISION[name] for name in ("nms", "batched_nms")},
    **{f"torch.linalg.{name}": tensors for name, tensors in _LINEAR.items()},
    "torch.cholesky": ("input",),
    "torch.det": ("input",),
    "torch.cross": ("input", "other"),
    "torch.trace": ("input",),
    "torch.matrix_exp": ("input",),
}
_LISTS = frozenset({"boxes"})
"""Parameters that may also be a list of tensors, for which copies to the CPU would have to go through the list."""
_NOTE = "compute it with CPU copies and bring the result back, or with other operators of PyTorch"


class ComputeOnCpu(PythonRule):
    """``torchvision.ops.nms``, ``roi_align`` and parts of ``torch.linalg`` have no TPU kernel in torch_tpu 0.2.0.

    Off CUDA and the CPU they are computed with CPU copies, and the result goes back to the device; gradients go through
    the copies. On CUDA and the CPU the call is what it was.

    Fixed where the tensors are plain names or attributes; others, and lists of boxes, are reported. Calls in a function
    that fetches its input to the CPU anyway are not told apart.
    """

    ID = "TPU915"
    NAME = "compute-on-cpu"
    FAMILY = "F"
    MESSAGE = "this operator has kernels for the CPU and CUDA only"
    TRIGGERS = tuple(sorted({f"{name.rpartition('.')[2]}(" for name in _TABLE}))
    REQUIRES = ("torch",)
    PATTERN = r"torchvision\.ops|from +torchvision +import|torch\.linalg|torch +import +linalg|torch\.(cholesky|det|cross|trace|matrix_exp)\("
    COVERS = ("F17", "F18", "L6")
    VALID = (
        "from own import nms\nkeep = nms(boxes, scores, 0.5)\n",
        "import torchvision\nkeep = torchvision.ops.nms(boxes.cpu(), scores.cpu(), 0.5)\n",
        "import numpy as np\nnp.linalg.inv(a)\n",
        "import torch\nif torch.cuda.is_available():\n    torch.linalg.det(a)\n",
    )
    INVALID = (
        Invalid(
            "import torchvision\nkeep = torchvision.ops.nms(boxes, scores, iou_threshold=0.5)[:9]\n",
            'import torchvision\nkeep = (torchvision.ops.nms(boxes, scores, iou_threshold=0.5) if boxes.device.type in ("cpu", "cuda", "meta") '
            "else torchvision.ops.nms(boxes.cpu(), scores.cpu(), iou_threshold=0.5).to(boxes.device))[:9]\n",
        ),
        Invalid(
            "import torch\nx = torch.linalg.cross(a, b)\n",
            'import torch\nx = torch.linalg.cross(a, b) if a.device.type in ("cpu", "cuda", "meta") '
            "else torch.linalg.cross(a.cpu(), b.cpu()).to(a.device)\n",
        ),
        Invalid("from torchvision.ops import roi_align\ny = roi_align(features, boxes, (7, 7))\n", None),
        Invalid("import torch\nd = torch.linalg.det(f(x))\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of such operators."""
        for call in module.calls(*_TABLE):
            if on_cuda_path(module, call) or _decided(module, call):
                continue
            tensors = _TABLE[module.qualify(call.func) or ""]
            text = _text(module, call, tensors)
            if text is None:
                if not _fetched(module, call):
                    yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE)
                continue
            yield Match(*module.span(call), fix=Fix((module.replace(call, parenthesised(module, call, text)),)))


def _decided(module: Module, call: ast.Call) -> bool:
    """Whether the call is a branch of the choice this rule writes."""
    parent = module.parent(call)
    while isinstance(parent, ast.Attribute | ast.Call):
        parent = module.parent(parent)
    return isinstance(parent, ast.IfExp) and "device.type" in module.text(parent.test)


def _fetched(module: Module, call: ast.Call) -> bool:
    return any(".cpu()" in module.text(value) for value in call.args)


def _text(module: Module, call: ast.Call, tensors: tuple[str, ...]) -> str | None:
    if spread(call) or not call.args or _LISTS & set(tensors[1:]):
        return None
    given = [*zip(tensors, call.args, strict=False)]
    given += [(k.arg, k.value) for k in call.keywords if k.arg in tensors]
    if not all(dotted(value) for _, value in given):
        return None
    start, _ = module.span(call)
    text = module.text(call)
    copied = text
    for _, value in sorted(given, key=lambda pair: module.span(pair[1]), reverse=True):
        place = module.span(value)[1] - start
        copied = f"{copied[:place]}.cpu(){copied[place:]}"
    first = module.text(call.args[0])
    return f'{text} if {first}.device.type in ("cpu", "cuda", "meta") else {copied}.to({first}.device)'
