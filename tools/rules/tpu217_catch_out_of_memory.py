"""TPU217: handlers for CUDA's out-of-memory error."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import every_use
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = (
    "XLA allocates a whole program at once and may raise RuntimeError with RESOURCE_EXHAUSTED, at compilation or later "
    "than the line that asked for the memory; retrying with a smaller batch compiles again"
)


class CatchOutOfMemory(PythonRule):
    """``except torch.cuda.OutOfMemoryError`` and tests for ``"CUDA out of memory"`` do not see a full TPU.

    ``torch.cuda.OutOfMemoryError`` is ``torch.OutOfMemoryError``, so the name does no harm; what is caught is the question.

    Not covered: handlers of plain RuntimeError that do not look at the message.
    """

    ID = "TPU217"
    NAME = "catch-out-of-memory"
    FAMILY = "N"
    GRADE = Grade.ADVICE
    MESSAGE = "this handler expects CUDA's out-of-memory error; a full TPU may raise another"
    WHOLE_WORDS = True
    TRIGGERS = ("OutOfMemoryError", "out of memory")
    COVERS = ("N1",)
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    E = torch.cuda.OutOfMemoryError\n",
        "print('out of memory')\n",
    )
    INVALID = (
        Invalid("import torch\ntry:\n    f()\nexcept torch.cuda.OutOfMemoryError:\n    g()\n", None),
        Invalid("try:\n    f()\nexcept RuntimeError as e:\n    if 'out of memory' in str(e):\n        g()\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the class, and tests for its message, off the CUDA-only path."""
        for node, name in every_use(module):
            if name == "OutOfMemoryError" and not on_cuda_path(module, node):
                yield Match(*module.span(node), note=_NOTE)
        for test in module.nodes(ast.Compare):
            if isinstance(test.ops[0], ast.In) and "out of memory" in (string(test.left) or ""):
                yield Match(*module.span(test), note=_NOTE)
