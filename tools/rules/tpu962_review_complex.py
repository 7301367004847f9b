"""TPU962: complex tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_ROTATE = "rotate with cos and sin on the two halves: (a*cos - b*sin, a*sin + b*cos)"
_TRANSFORM = (
    "keep the Fourier transform on the CPU and bring its real parts back, or write it as products with cos and sin"
)
_MAKERS = ("torch.view_as_complex", "torch.polar", "torch.complex")


_SPECTRUM = "keep real and imaginary parts in tensors of their own: (a*c - b*d, a*d + b*c) multiplies two such pairs"
_PARTS = "keep real and imaginary parts in tensors of their own, and write the products out"


class ReviewComplex(PythonRule):
    """``torch.view_as_complex`` and ``torch.polar``, as rotary embeddings use them.

    TPUs have no complex arithmetic of their own; it is emulated, some operators are missing, and a compiled program breaks
    there. The same rotation with cosine and sine on the two halves is real and equal within rounding.

    One finding a function. Reported only: which halves belong together is in the program's layout.
    """

    ID = "TPU962"
    NAME = "review-complex"
    FAMILY = "K"
    GRADE = Grade.ADVICE
    MESSAGE = "complex numbers are emulated on a TPU, and not all of their operators exist"
    TESTS = False
    TRIGGERS = ("view_as_complex(", "torch.polar(", "torch.complex(")
    COVERS = ("K2", "K3", "K5")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    c = torch.view_as_complex(x)\n",
        "import torch\ndef merge(a):\n    return torch.complex(a[0], a[1]) if a.is_complex() else a\n",
        "def view_as_complex(x):\n    return x\ny = view_as_complex(x)\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\ndef rotate(q, freqs):\n    q_ = torch.view_as_complex(q.float())\n    k_ = torch.view_as_complex(q)\n"
            "    return torch.view_as_real(q_ * freqs)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first complex tensor of each function."""
        seen = set()
        for call in sorted(module.calls(*_MAKERS), key=lambda c: (c.lineno, c.col_offset)):
            function = module.function(call)
            if function not in seen and not on_cuda_path(module, call):
                seen.add(function)
                text = module.text(function if function is not None else call)
                if "is_complex()" not in text:
                    yield Match(*module.span(call), note=_note(text))


def _note(text: str) -> str:
    """What to do instead in a function of this text."""
    if "fft" in text:
        return _TRANSFORM
    if re.search(r"(?i)spec|stft|mask", text):
        return _SPECTRUM
    return _ROTATE if re.search(r"(?i)freqs|rotary|rope|rotate", text) else _PARTS
