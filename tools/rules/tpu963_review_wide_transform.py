"""TPU963: Fourier transforms in double precision."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_WIDE = re.compile(r"\.double\(\)|torch\.(float64|double|complex128)|np\.float64")


class ReviewWideTransform(PythonRule):
    """``torch.fft`` of float64 values gives complex128, which a TPU does not have.

    Cast to float32 before the transform, or transform on the CPU where the precision is needed.

    Only calls whose own arguments, or whose function, speak of double precision count. Reported only.
    """

    ID = "TPU963"
    NAME = "review-wide-transform"
    FAMILY = "K"
    GRADE = Grade.ADVICE
    MESSAGE = "a transform of float64 values is complex128, which a TPU does not have"
    TESTS = False
    TRIGGERS = ("fft.",)
    REQUIRES = ("torch",)
    PATTERN = r"\.double\(\)|float64|torch\.double|complex128"
    COVERS = ("K4",)
    VALID = (
        "import torch\ny = torch.fft.fft2(x)\nz = x.double()\n",
        "import numpy as np\nimport torch\ny = np.fft.fft(x.astype(np.float64))\n",
    )
    INVALID = (
        Invalid("import torch\ny = torch.fft.fft2(x.double())\n", None),
        Invalid("import torch\n\ndef spectrum(x):\n    x = x.to(torch.float64)\n    return torch.fft.rfft(x)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields transforms of double precision."""
        for call in module.nodes(ast.Call):
            name = module.qualify(call.func) or ""
            if not name.startswith("torch.fft.") or "freq" in name or "shift" in name or on_cuda_path(module, call):
                continue
            function = module.function(call)
            if _WIDE.search(module.text(call)) or (function is not None and _WIDE.search(module.text(function))):
                yield Match(*module.span(call), note="cast to float32 first, or transform on the CPU")
