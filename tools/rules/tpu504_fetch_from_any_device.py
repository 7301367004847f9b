"""TPU504: tensors fetched to the CPU only when they are on CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.device_tests import off_cpu
from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.rules.base import Invalid, Match, PythonRule


class FetchFromAnyDevice(PythonRule):
    """``if x.is_cuda: x = x.cpu()`` leaves a TPU's tensor where it is, and what follows wants it on the CPU.

    The test becomes ``x.device.type not in ("cpu", "meta")``: on CUDA and on the CPU it is what it was.

    Not covered: branches that do more than fetch the tensor they test.
    """

    ID = "TPU504"
    NAME = "fetch-from-any-device"
    FAMILY = "E"
    MESSAGE = "only CUDA tensors are fetched to the CPU here"
    WHOLE_WORDS = True
    TRIGGERS = (".is_cuda", '"cuda', "'cuda")
    COVERS = ("E6",)
    VALID = (
        "if x.device.type != 'cpu':\n    x = x.cpu()\n",
        "if x.is_cuda:\n    x = kernel(x)\n",
        "y = x.cpu() if x.device.type == 'mps' else x\n",
    )
    INVALID = (
        Invalid("if x.is_cuda:\n    x = x.cpu()\n", 'if x.device.type not in ("cpu", "meta"):\n    x = x.cpu()\n'),
        Invalid(
            "y = t.cpu().numpy() if t.device.type == 'cuda' else t.numpy()\n",
            "y = t.cpu().numpy() if t.device.type not in ('cpu', 'meta') else t.numpy()\n",
        ),
        Invalid(
            "state = {k: (v.detach().cpu() if v.is_cuda else v) for k, v in state.items()}\n",
            'state = {k: (v.detach().cpu() if v.device.type not in ("cpu", "meta") else v) for k, v in state.items()}\n',
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields tests for CUDA that decide about one tensor's ``.cpu()``."""
        branches: list[ast.If | ast.IfExp] = [*module.nodes(ast.If), *module.nodes(ast.IfExp)]
        for branch in branches:
            subject = _subject(module, branch.test)
            if subject is None or on_cuda_path(module, branch) or not _only_fetches(module, branch, subject):
                continue
            quote = "'" if "'" in module.text(branch.test) else '"'
            edit = off_cpu(module, branch.test, f"{subject}.device.type", quote)
            yield Match(*module.span(branch.test), fix=Fix((edit,)))


def _subject(module: Module, test: ast.expr) -> str | None:
    """The tensor whose device is asked for, as source text."""
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        return module.text(test.value)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left = test.left
        if string(test.comparators[0]) == "cuda" and isinstance(left, ast.Attribute) and left.attr == "type":
            if isinstance(left.value, ast.Attribute) and left.value.attr == "device":
                return module.text(left.value.value)
    return None


def _only_fetches(module: Module, branch: ast.If | ast.IfExp, subject: str) -> bool:
    if isinstance(branch, ast.IfExp):
        return _fetch(module, branch.body, subject)
    first = branch.body[0]
    single = len(branch.body) == 1 and not branch.orelse
    return single and isinstance(first, ast.Assign | ast.Return) and _fetch(module, first.value, subject)


def _fetch(module: Module, value: ast.expr | None, subject: str) -> bool:
    """Whether an expression is the subject's ``.cpu()`` and nothing for CUDA beside it."""
    while isinstance(value, ast.Call) and isinstance(function := value.func, ast.Attribute):
        if function.attr == "cpu":
            return module.text(function.value) in (subject, f"{subject}.detach()", f"{subject}.data")
        if function.attr not in ("numpy", "detach", "tolist", "item", "clone"):
            return False
        value = function.value
    return False
