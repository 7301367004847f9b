"""TPU411: processes started from Python, one for each CUDA device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.literals import DEVICE_WORD
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_SPAWN = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes",
          "torch.multiprocessing.spawn.spawn", "torch.multiprocessing.spawn.start_processes")  # fmt: skip


class ReviewSpawn(PythonRule):
    """``mp.spawn(worker, nprocs=...)`` on a TPU host.

    One process drives one chip, and the parent must say how many there will be before it starts them
    (``torch.tpu.distributed.set_tpu_launch_env(nproc_per_node=N)``); the number of processes is that of the chips, not a
    free choice. The parent must not touch the device itself, or the children find it taken; module-level code that moves
    something to the device runs in the parent too.

    Reported only: where the call belongs depends on the program's start-up.
    """

    ID = "TPU411"
    NAME = "review-spawn"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "on a TPU host the parent must set the launch environment before it spawns, and keep off the device"
    WHOLE_WORDS = True
    TRIGGERS = ("spawn", "start_processes")
    REQUIRES = ("multiprocessing",)
    PATTERN = r"(?:spawn|start_processes)\("
    SCOPE = Scope.FILE
    COVERS = ("D10", "D11", "D12", "D13")
    VALID = (
        "import torch.multiprocessing as mp\ndef debug_launcher(f):\n    mp.start_processes(f, nprocs=2, start_method='fork')\n",
        "import subprocess\nsubprocess.spawn(worker)\n",
        "import torch\nif torch.cuda.is_available():\n    torch.multiprocessing.spawn(worker, nprocs=2)\n",
    )
    INVALID = (
        Invalid("import torch.multiprocessing as mp\nmp.spawn(worker, nprocs=4)\n", None),
        Invalid(
            "import torch.multiprocessing as mp\nmodel = Net().to(device)\n\nif __name__ == '__main__':\n"
            "    mp.spawn(worker, args=(model,), nprocs=4)\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields spawning calls, and device work at module level beside them."""
        calls = [c for c in module.calls(*_SPAWN) if not on_cuda_path(module, c) and not _for_debugging(module, c)]
        note = (
            "on a TPU, call torch.tpu.distributed.set_tpu_launch_env(nproc_per_node=N) first, N being the host's chips"
        )
        for call in calls:
            yield Match(*module.span(call), note=note)
        if calls:
            for move in _moves_at_import(module):
                message = "this runs in the process that spawns, which must not touch the TPU"
                yield Match(*module.span(move), message, note="move it into the function that is spawned")


def _moves_at_import(module: Module) -> Iterator[ast.Call]:
    for statement in module.tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.If):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                if node.args and _is_device(node.args[0]):
                    yield node


def _is_device(argument: ast.expr) -> bool:
    name = argument.id if isinstance(argument, ast.Name) else string(argument) or ""
    return DEVICE_WORD.search(name) is not None or name.startswith("cuda")


def _for_debugging(module: Module, call: ast.Call) -> bool:
    """Whether the function says that it starts processes to look for faults, on the CPU."""
    return "debug" in getattr(module.function(call), "name", "")
