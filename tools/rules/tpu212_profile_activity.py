"""TPU212: a profiler told to watch CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_ACTIVITY = "torch.profiler.ProfilerActivity"
_SUPPORTED = "torch.profiler.supported_activities"
_NOTE = "add what torch.profiler.supported_activities() names for the device in use"


class ProfileActivity(PythonRule):
    """``activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`` records nothing of another accelerator.

    ``torch.profiler.supported_activities()`` names both on a CUDA machine, and the accelerator's own elsewhere.

    Not covered: lists put together in several statements, and sorting a table by ``cuda_time_total``.
    """

    ID = "TPU212"
    NAME = "profile-activity"
    FAMILY = "B"
    MESSAGE = "the profiler is told to watch CUDA, so it sees nothing of another accelerator"
    WHOLE_WORDS = True
    TRIGGERS = ("CUDA", "cuda")
    REQUIRES = ("ProfilerActivity",)
    COVERS = ("R1",)
    VALID = (
        "import torch\np = torch.profiler.profile(activities=torch.profiler.supported_activities())\n",
        "import torch\nif torch.cuda.is_available():\n    acts += [torch.profiler.ProfilerActivity.CUDA]\n",
    )
    INVALID = (
        Invalid(
            "import torch\np = torch.profiler.profile(\n"
            "    activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],\n)\n",
            "import torch\np = torch.profiler.profile(\n    activities=torch.profiler.supported_activities(),\n)\n",
        ),
        Invalid(
            "from torch.profiler import profile, ProfilerActivity\np = profile(activities=[ProfilerActivity.CUDA])\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields uses of the CUDA activity off the CUDA-only path; a list of both activities has a fix."""
        whole: set[ast.AST] = set()
        for call in module.nodes(ast.Call):
            argument = keyword(call, "activities")
            if argument is not None and _both(module, argument.value) and not on_cuda_path(module, call):
                whole.update(ast.walk(argument.value))
                edit = module.replace(argument.value, f"{spell(module, _SUPPORTED)}()")
                yield Match(*module.span(argument.value), fix=imported(module, [edit], _SUPPORTED))
        for node in module.nodes(ast.Attribute):
            if node not in whole and _names(module, node, "CUDA") and not on_cuda_path(module, node):
                yield Match(*module.span(node), grade=Grade.ADVICE, note=_NOTE)


def _names(module: Module, node: ast.AST, activity: str) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != activity:
        return False
    return module.qualify(node) in (f"{_ACTIVITY}.{activity}", f"torch.autograd.ProfilerActivity.{activity}")


def _both(module: Module, value: ast.expr) -> bool:
    if not isinstance(value, ast.List | ast.Tuple | ast.Set) or len(value.elts) != 2:
        return False
    return all(any(_names(module, e, activity) for e in value.elts) for activity in ("CPU", "CUDA"))
