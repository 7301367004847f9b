"""TPU953: packed sequences."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import first_in_functions
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_PACKS = ("torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pack_sequence")


class ReviewPackedSequence(PythonRule):
    """``pack_padded_sequence`` lays a batch out by its lengths, so every set of lengths is a program of its own on a TPU.

    Running the padded batch and masking what is behind the end gives the same outputs for one direction; states at the end
    have to be picked by length. Reported only.
    """

    ID = "TPU953"
    NAME = "review-packed-sequence"
    FAMILY = "J"
    GRADE = Grade.ADVICE
    MESSAGE = "a packed batch has a layout for each set of lengths, and a TPU compiles for each"
    TESTS = False
    TRIGGERS = ("pack_padded_sequence(", "pack_sequence(")
    COVERS = ("J7",)
    VALID = (
        "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\ndef sample(n):\n    x = torch.randn(n, 3, 4)\n"
        "    return pack_padded_sequence(x, [3] * n)\n",
        "def pack_sequence(x):\n    return x\ny = pack_sequence(x)\n",
    )
    INVALID = (
        Invalid(
            "from torch.nn.utils.rnn import pack_padded_sequence\np = pack_padded_sequence(x, lengths, batch_first=True)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields packing calls."""
        note = "run the padded batch, mask the outputs behind each end, and gather the last state by length"
        packs = (c for c in module.calls(*_PACKS) if not on_cuda_path(module, c) and not _of_random_data(module, c))
        for call in first_in_functions(module, packs):
            yield Match(*module.span(call), note=note)


def _of_random_data(module: Module, call: ast.Call) -> bool:
    """Whether the function makes its data up, as those for tests do."""
    function = module.function(call)
    return function is not None and "torch.rand" in module.text(function)
