"""TPU215: a CUDA call whose failure is swallowed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.attempts import catches, decides_by_failure, raises
from tools.code.cuda_api import API, Kind
from tools.code.cuda_calls import every_use
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_DEVICES = frozenset({"cpu", "cuda", "gpu"})
_DECIDES = (
    "what the program does then says whether it uses an accelerator; ask torch.accelerator.is_available() instead"
)


class ReportHiddenFallback(PythonRule):
    """``try: ... torch.cuda.X ... except Exception: ...`` hides that another accelerator takes the slow way or none.

    What stands in the handler runs on every device without CUDA, silently.

    Not covered: handlers that raise again.
    """

    ID = "TPU215"
    NAME = "report-hidden-fallback"
    FAMILY = "B"
    GRADE = Grade.ADVICE
    MESSAGE = "a broad except around a CUDA call hides that other accelerators always take the handler"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("B10",)
    VALID = (
        "import torch\ntry:\n    torch.cuda.synchronize()\nexcept Exception:\n    raise\n",
        "import torch\ntry:\n    torch.cuda.synchronize()\nexcept KeyError:\n    pass\n",
        "import torch\ntry:\n    torch.cuda.empty_cache()\nexcept Exception:\n    pass\n",
    )
    INVALID = (
        Invalid("import torch\ntry:\n    g = torch.cuda.CUDAGraph()\nexcept Exception:\n    g = None\n", None),
        Invalid("import torch\ntry:\n    n = torch.cuda.get_device_name()\nexcept:\n    n = 'none'\n", None),
        Invalid(
            "import torch\ndef has_gpu():\n    try:\n        torch.cuda.synchronize()\n        return True\n"
            "    except Exception:\n        return False\n",
            None,
            unsafe=True,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the broad handlers around calls that fail without CUDA."""
        seen: set[ast.ExceptHandler] = set()
        for node, name in every_use(module):
            if API[name].kind == Kind.HARMLESS or name in ("is_available", "device_count", "OutOfMemoryError"):
                continue
            handler = _handler(module, node)
            if handler is not None and handler not in seen and not on_cuda_path(module, node):
                seen.add(handler)
                if decides_by_failure(module, node) and _chooses(handler):
                    yield Match(*module.span(node), grade=Grade.UNSAFE, note=_DECIDES)
                    continue
                note = f"torch.cuda.{name} raises without CUDA; decide by the device instead, and say so when it is skipped"
                yield Match(*module.span(node), note=note)


def _handler(module: Module, node: ast.AST) -> ast.ExceptHandler | None:
    child = node
    for parent in module.ancestors(node):
        if isinstance(parent, ast.Try) and child in parent.body:
            return next((h for h in parent.handlers if catches(h) and not raises(h)), None)
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        child = parent
    return None


def _chooses(handler: ast.ExceptHandler) -> bool:
    """Whether an answer (true or false) or a device is chosen by the handler."""
    values = [n.value for s in handler.body for n in ast.walk(s) if isinstance(n, ast.Constant)]
    return any(value is True or value is False or value in _DEVICES for value in values)
