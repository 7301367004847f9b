"""TPU119: a device chosen by asking for CUDA, in a form that no rule rewrites."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from tools.code.guards import cuda_flags, dotted, on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule
from tools.rules.tpu101_choose_accelerator import choices
from tools.rules.tpu102_test_accelerator import questions

_DEVICE = re.compile(r"(?i)(^|_)(cpu|cuda|gpu|dev|device)(_|$|\d)")
_TELLS = frozenset({"print", "info", "debug", "warning", "warn", "error", "write", "log", "format", "join", "append"})


class ReportDeviceChoice(PythonRule):
    """``["cpu", "cuda"][torch.cuda.is_available()]``, ``0 if torch.cuda.is_available() else "cpu"`` and their like.

    Any other accelerator takes the CPU's side without a word. Choose by ``torch.accelerator.is_available()``, and take the
    device from ``torch.accelerator.current_accelerator()``.

    Not covered: answers that are handed on before anything is chosen by them.
    """

    ID = "TPU119"
    NAME = "report-device-choice"
    FAMILY = "A"
    GRADE = Grade.UNSAFE
    MESSAGE = "the device is chosen by asking for CUDA alone, in a form that is not rewritten; other accelerators take the CPU"
    WHOLE_WORDS = True
    TRIGGERS = ("is_available",)
    REQUIRES = ("cuda",)
    COVERS = ("A9",)
    VALID = (
        "import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'\n",
        "import torch\nprint('cpu' if not torch.cuda.is_available() else 'gpu')\n",
        "import torch\nfused = torch.cuda.is_available()\n",
        "import torch\nx = f() if torch.cuda.is_available() else None\n",
        "import torch\nd = f'cuda:{r}' if torch.cuda.is_available() else DEVICE_TYPE\n",
        "import torch\nassert torch.cuda.is_available(), 'not on the cpu'\n",
    )
    INVALID = tuple(
        Invalid(f"import torch\n{text}\n", None)
        for text in (
            "d = ['cpu', 'cuda'][torch.cuda.is_available()]",
            "use = torch.cuda.is_available()\nd = ('cpu', 'cuda:0')[use]",
            "d = ['cpu', 'cuda:0'][int(torch.cuda.is_available())]",
            "d = {True: 'cuda', False: 'cpu'}[torch.cuda.is_available()]",
            "d = torch.cuda.is_available() and 'cuda' or 'cpu'",
            "d = 0 if torch.cuda.is_available() else 'cpu'",
            "d = torch.cuda.current_device() if torch.cuda.is_available() else 'cpu'",
            "d = 'cuda' if torch.cuda.is_available() is True else 'cpu'",
            "d = 'cuda' if all([torch.cuda.is_available(), on]) else 'cpu'",
            "d = next(n for n, ok in [('cuda', torch.cuda.is_available()), ('cpu', True)] if ok)",
            "d = CUDA if torch.cuda.is_available() else CPU",
            "if ok := torch.cuda.is_available():\n    pass\nd = torch.device('cuda' if ok else 'cpu')",
            "match torch.cuda.is_available():\n    case True:\n        d = 'cuda'\n    case False:\n        d = 'cpu'",
        )
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the questions that a device hangs on and that the other rules leave."""
        for node in _indexed(module):
            yield Match(*module.span(node))
        calls = [c for c in module.calls("torch.cuda.is_available") if not on_cuda_path(module, c)]
        if not calls:
            return
        known = [(match.start, match.end) for match in (*choices(module), *questions(module))]
        for call in calls:
            start, end = module.span(call)
            if not any(first <= start and end <= last for first, last in known) and _decides(module, call):
                yield Match(start, end)


def _indexed(module: Module) -> Iterator[ast.expr]:
    """Pairs of device names that a flag chooses from: ``("cpu", "cuda")[use_cuda]``."""
    for node in module.nodes(ast.Subscript):
        if isinstance(node.value, ast.Tuple | ast.List | ast.Dict) and dotted(node.slice) in cuda_flags(module):
            if _names_both(node.value) and not on_cuda_path(module, node):
                yield node


def _names_both(holder: ast.AST) -> bool:
    """Whether the CPU and CUDA are named in it, CUDA perhaps with an index."""
    names = {(string(node) or "").partition(":")[0] for node in ast.walk(holder)}
    return {"cpu", "cuda"} <= names


def _decides(module: Module, call: ast.Call) -> bool:
    around = [call, *module.ancestors(call)]
    within = around[: next(i for i, parent in enumerate(around) if isinstance(parent, ast.stmt)) + 1]
    if any(isinstance(p, ast.JoinedStr | ast.Assert) or (isinstance(p, ast.Call) and _tells(p)) for p in within):
        return False
    for child, parent in pairwise(within):
        if isinstance(parent, ast.NamedExpr):
            return True
        if isinstance(parent, ast.IfExp) and child is parent.test:
            branches = (parent.body, parent.orelse)
            return all(map(_is_device, branches)) or "cpu" in map(string, branches)
    statement = within[-1]
    if isinstance(statement, ast.Match):
        return any(_is_device(node) for case in statement.cases for node in ast.walk(case))
    simple = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return)
    return simple and _names_both(statement)


def _is_device(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return bool(_DEVICE.search(name)) or string(node) in ("cpu", "cuda")


def _tells(call: ast.Call) -> bool:
    function = call.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in _TELLS
