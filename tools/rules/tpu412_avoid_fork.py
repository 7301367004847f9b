"""TPU412: worker processes forked from a process that holds the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SETTERS = frozenset({
    f"{package}.{name}"
    for package in ("multiprocessing", "torch.multiprocessing")
    for name in ("set_start_method", "get_context")
})  # fmt: skip


class AvoidFork(PythonRule):
    """``set_start_method("fork")`` and its like.

    A forked child cannot use the TPU ("cannot access or re-initialize TPU in a forked subprocess"). Children that only
    prepare data may be forked, so it is for a person to say whether ``"spawn"`` is needed.
    """

    ID = "TPU412"
    NAME = "avoid-fork"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "a forked child cannot use the TPU"
    WHOLE_WORDS = True
    TRIGGERS = ('"fork', "'fork", '"forkserver', "'forkserver")
    COVERS = ("D10",)
    VALID = (
        "import multiprocessing\nmultiprocessing.set_start_method('spawn')\n",
        "git = run('fork')\n",
    )
    INVALID = (
        Invalid("import torch.multiprocessing as mp\nmp.set_start_method('fork', force=True)\n", None),
        Invalid(
            "from torch.utils.data import DataLoader\nloader = DataLoader(data, multiprocessing_context='fork')\n", None
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields choices of the start method fork."""
        note = 'use "spawn" if the children touch the device; workers that only load data may stay'
        for call in module.nodes(ast.Call):
            name = module.qualify(call.func)
            chosen = argument(call, "method", 0) if name in _SETTERS else argument(call, "multiprocessing_context")
            if string(chosen) == "fork":
                yield Match(*module.span(call), note=note)
