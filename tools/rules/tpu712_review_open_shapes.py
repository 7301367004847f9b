"""TPU712: ``torch.compile`` that may meet a second shape."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import spread
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Valid


class ReviewOpenShapes(PythonRule):
    """``torch.compile(model)`` leaves open whether shapes are static.

    At the second shape PyTorch marks the dimension as dynamic. TorchTPU 0.2.0 then takes its experimental path with padded
    sizes, which the simulated device cannot run at all ("Please set torch.compile(..., dynamic=False, ...)"); with
    ``dynamic=False`` each shape is compiled by itself. Where every batch has one shape nothing needs to be done, so this is
    reported only, and not in tests and benchmarks, nor where the program does without when it fails.
    """

    ID = "TPU712"
    NAME = "review-open-shapes"
    FAMILY = "Q"
    GRADE = Grade.ADVICE
    MESSAGE = "a second input shape makes this compilation dynamic, which is experimental on a TPU"
    WHOLE_WORDS = True
    TESTS = False
    TRIGGERS = ("torch.compile",)
    COVERS = ("Q1", "Q5")
    VALID = (
        Valid("import torch\nmodel = torch.compile(model)\n", "bench.py"),
        "import torch\ntry:\n    f = torch.compile(f)\nexcept Exception:\n    pass\n",
        "import torch\nmodel = torch.compile(model, dynamic=False)\n",
        "import torch\nif torch.cuda.is_available():\n    model = torch.compile(model)\n",
        "import torch\nmodel = torch.compile(model, **options)\n",
    )
    INVALID = (
        Invalid("import torch\nmodel = torch.compile(model)\n", None),
        Invalid("import torch\n\n@torch.compile\ndef f(x):\n    return x\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields compilations that do not say whether shapes are dynamic."""
        note = "keep shapes fixed (drop_last, padding), or give dynamic=False on a TPU"
        for use in module.references("torch.compile"):
            parent = module.parent(use)
            call = parent if isinstance(parent, ast.Call) and parent.func is use else None
            decorates = isinstance(parent, ast.FunctionDef | ast.ClassDef) and use in parent.decorator_list
            if on_cuda_path(module, use) or (call is None and not decorates) or _tried(module, use):
                continue
            if call is None or not (spread(call) or keyword(call, "dynamic")):
                yield Match(*module.span(call or use), note=note)


_BENCHMARK = re.compile(r"(?i)(^|[/_])bench")


def _tried(module: Module, use: ast.expr) -> bool:
    """Whether it is compiled where that works and not where it fails, or in a benchmark, whose shapes are chosen."""
    handled = any(isinstance(a, ast.Try) and a.handlers for a in module.ancestors(use))
    return handled or _BENCHMARK.search(module.source.relative) is not None
