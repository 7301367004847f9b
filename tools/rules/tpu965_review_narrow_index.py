"""TPU965: index arithmetic in int32."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_STRIDE = re.compile(r"(?i)stride|pitch|row|width|height|vocab|size|numel")
_NARROW = frozenset({"torch.int32", "torch.int"})


class ReviewNarrowIndex(PythonRule):
    """``torch.arange(rows, dtype=torch.int32) * stride`` wraps round above 2**31 without a word.

    Indices that are multiplied by strides stay int64; a TPU takes them. Reported where an int32 ``arange`` is
    multiplied by something that speaks of strides or sizes.
    """

    ID = "TPU965"
    NAME = "review-narrow-index"
    FAMILY = "K"
    GRADE = Grade.ADVICE
    MESSAGE = "a product of int32 indices wraps round above 2**31"
    TRIGGERS = ("torch.int",)
    PATTERN = r"arange\([^\n]*torch\.int(32)?\b"
    COVERS = ("K11",)
    VALID = (
        "import torch\ni = torch.arange(n) * stride\n",
        "import torch\ni = torch.arange(n, dtype=torch.int32) * 2\n",
    )
    INVALID = (Invalid("import torch\ni = torch.arange(n, dtype=torch.int32) * stride\n", None),)

    def check(self, module: Module) -> Iterator[Match]:
        """Yields products with a new int32 tensor."""
        for call in module.calls("torch.arange"):
            kind = keyword(call, "dtype")
            product = module.parent(call)
            if kind is None or module.qualify(kind.value) not in _NARROW or on_cuda_path(module, call):
                continue
            if isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult):
                other = product.left if product.right is call else product.right
                if _STRIDE.search(module.text(other)):
                    yield Match(*module.span(product), note="leave the dtype out; int64 is the default")
