"""TPU214: parts of ``torch.cuda`` that nothing else has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_api import API, handled_by
from tools.code.cuda_calls import chain, guarded, statement_of, uses
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_STATEMENTS = frozenset(
    {"memory_stats", "memory_summary", "memory_snapshot", "cudart", "nccl.all_reduce", "nccl.broadcast"}
    | {"memory._snapshot", "memory_stats_as_nested_dict"}
)


class BranchCudaOnly(PythonRule):
    """CUDA graphs, memory pools, NVML readings, the allocator's tables, direct NCCL: nothing takes their place.

    A statement that does nothing but print or call such a thing is kept behind ``if torch.cuda.is_available():``.
    Everything else is a decision for a person; the note says what to use instead.

    Not covered: names that are only mentioned (annotations, ``isinstance``).
    """

    ID = "TPU214"
    NAME = "branch-cuda-only"
    FAMILY = "B"
    GRADE = Grade.ADVICE
    MESSAGE = "only CUDA has this"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("B9",)
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    g = torch.cuda.CUDAGraph()\n",
        "import torch\ndef f(g: torch.cuda.CUDAGraph):\n    pass\n",
        "import torch\nif device.type == 'cuda':\n    print(torch.cuda.memory_summary())\n",
    )
    INVALID = (
        Invalid("import torch\ng = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g):\n    y = f(x)\n", None, count=2),
        Invalid("import torch\nlog(torch.cuda.utilization())\n", None),
        Invalid(
            "import torch\nprint(torch.cuda.memory_summary())\n",
            "import torch\nif torch.cuda.is_available():\n    print(torch.cuda.memory_summary())\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.cudart().cudaProfilerStart()\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.cudart().cudaProfilerStart()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of CUDA-only names off the CUDA-only path."""
        for node, name in uses(module, handled_by(self.ID)):
            call = module.parent(node)
            if name != "default_generators" and not (isinstance(call, ast.Call) and call.func is node):
                continue
            whole = chain(module, node)
            statement = _about_it_alone(module, whole) if name in _STATEMENTS else None
            fix = guarded(module, [statement])[statement] if statement else None
            grade = Grade.SAFE if fix else None
            note = None if fix else API[name].note
            yield Match(*module.span(whole), f"only CUDA has torch.cuda.{name}", fix, grade, note)


def _about_it_alone(module: Module, whole: ast.expr) -> ast.stmt | None:
    """The statement that only evaluates or prints the expression."""
    if (statement := statement_of(module, whole)) is not None:
        return statement
    outer = module.parent(whole)
    if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Name) and outer.func.id == "print":
        return statement_of(module, outer) if len(outer.args) == 1 else None
    return None
