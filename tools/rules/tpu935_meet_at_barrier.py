"""TPU935: torch_xla's rendezvous."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import guarded
from tools.code.edits import Edit
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.code.torch_xla import INITIALIZED, OPTIONAL, aside, model_calls, needs_torch_xla, statement_call
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_BARRIER = "torch.distributed.barrier"


class MeetAtBarrier(PythonRule):
    """``xm.rendezvous(tag)`` lets the processes of torch_xla meet; ``torch.distributed.barrier()`` does so for any.

    Without a process group there is nobody to wait for, so the call stands behind that question.

    Fixed where the file cannot be loaded without torch_xla. Not covered: payloads that are exchanged, which are reported.
    """

    ID = "TPU935"
    NAME = "meet-at-barrier"
    FAMILY = "I"
    MESSAGE = "this is torch_xla's rendezvous"
    TRIGGERS = ("rendezvous",)
    REQUIRES = ("torch_xla",)
    COVERS = ("I5", "D9")
    VALID = ("import torch_xla\nfrom torch.distributed.elastic import rendezvous\nrendezvous.get()\n",)
    INVALID = (
        Invalid(
            "import torch\nimport torch_xla.core.xla_model as xm\nxm.rendezvous('data')\nload()\n",
            "import torch\nimport torch_xla.core.xla_model as xm\nif torch.distributed.is_initialized():\n"
            "    torch.distributed.barrier()\nload()\n",
        ),
        Invalid("import torch_xla.core.xla_model as xm\nothers = xm.rendezvous('data', payload=b'x')\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the meetings."""
        calls = list(model_calls(module, "rendezvous"))
        inner: dict[ast.stmt, list[Edit]] = {
            statement: [module.replace(call, f"{spell(module, _BARRIER)}()")]
            for call in calls
            if needs_torch_xla(module) and (statement := statement_call(module, call))
        }
        fixes = guarded(module, inner, INITIALIZED, inner)
        for call in calls:
            if aside(module, call):
                continue
            fix = fixes.get(module.statement(call))
            note = "torch.distributed.all_gather_object exchanges objects" if needs_torch_xla(module) else OPTIONAL
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=None if fix else note)
