"""TPU413: a collective that only some ranks reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in ("all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "reduce_scatter", "reduce",
                 "broadcast", "broadcast_object_list", "gather", "scatter", "all_to_all", "barrier")
)  # fmt: skip
_RANK = re.compile(r"(?i)\brank\b|get_rank|local_rank|global_rank|is_main|is_master|master_process|main_process")

_WAITS = re.compile(
    r"(?im)^[ \t]*(?:el)?if\b(?=[^\n]*(?:!=|>|\bnot\b))"
    r"[^\n]*(?:\brank\b|get_rank|local_rank|global_rank|is_main|is_master|master_process|main_process)"
)
"""A branch that other ranks than the first take."""


class ReviewRankBranch(PythonRule):
    """A collective under ``if rank == 0:`` hangs, because the other ranks never call it.

    On CUDA such a call may go unnoticed when it is asynchronous or the groups differ; on a TPU every rank must run the same
    program, and even reading a value (``loss.item()``) of a sharded computation on one rank alone can block.

    Reported only. A branch whose ``else`` calls a collective too is left alone, and so is a barrier that ranks other than
    the first wait at (``if rank != 0``), the usual way to let one rank download first.
    """

    ID = "TPU413"
    NAME = "review-rank-branch"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "only some ranks reach this collective, so those that do wait for ever"
    WHOLE_WORDS = True
    TRIGGERS = (
        "all_reduce(",
        "all_gather",
        "reduce_scatter",
        "reduce(",
        "broadcast(",
        "broadcast_object",
        "gather(",
        "scatter(",
        "barrier(",
    )
    REQUIRES = ("distributed",)
    COVERS = ("D8", "D9")
    VALID = (
        "import torch.distributed as dist\ndist.barrier()\nif rank == 0:\n    save()\n",
        "import torch.distributed as dist\nif rank != 0:\n    dist.barrier()\nload()\nif rank == 0:\n    dist.barrier()\n",
        "import torch.distributed as dist\nif rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    dist.broadcast(y, 0)\n",
        "import torch.distributed as dist\nif dist.is_initialized():\n    dist.all_reduce(x)\n",
    )
    INVALID = (
        Invalid(
            "import torch.distributed as dist\nif dist.get_rank() == 0:\n    save()\n    dist.all_reduce(x)\n", None
        ),
        Invalid(
            "import torch.distributed as dist\nif is_main_process():\n    for m in metrics:\n        dist.reduce(m, 0)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields collectives under a test for a rank."""
        waits = _WAITS.search(module.source.text) is not None
        for call in module.calls(*_COLLECTIVES):
            branch = _rank_branch(module, call)
            if branch is None or _collective_in(module, branch.orelse):
                continue
            if (module.qualify(call.func) or "").endswith("barrier") and waits:
                continue
            note = f"the test is on line {branch.lineno}; let every rank make the call and only the use of the result differ"
            yield Match(*module.span(call), note=note)


def _rank_branch(module: Module, call: ast.Call) -> ast.If | None:
    child: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        if isinstance(parent, ast.If) and child in parent.body and _is_first(module, parent.test):
            return parent
        child = parent
    return None


def _is_first(module: Module, test: ast.expr) -> bool:
    text = module.text(test)
    if isinstance(test, ast.Compare):
        zero = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value == 0
        return isinstance(test.ops[0], ast.Eq) and zero and _RANK.search(text) is not None
    return (
        isinstance(test, ast.Name | ast.Attribute | ast.Call)
        and re.search(r"(?i)is_main|is_master|(main|master)_process", text) is not None
    )


def _collective_in(module: Module, statements: list[ast.stmt]) -> bool:
    calls = (n for s in statements for n in ast.walk(s) if isinstance(n, ast.Call))
    return any(module.names.qualify(c.func) in _COLLECTIVES for c in calls)
