"""TPU938: torch_xla's save."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument, spread
from tools.code.cuda_calls import imported
from tools.code.edits import Edit, Fix
from tools.code.module import Module
from tools.code.rewrite import guard, spell
from tools.code.torch_xla import (
    OPTIONAL,
    aside,
    first_rank_test,
    model_calls,
    needs_torch_xla,
    several_processes,
    statement_call,
)
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = "torch.save on the first rank; load with map_location='cpu'"


class SaveFromFirstRank(PythonRule):
    """``xm.save`` brings tensors to the CPU, saves on the first process, and makes all others wait for it.

    The waiting is why it hangs under a condition the processes disagree on. ``torch.save`` on the first process has none.

    Fixed where the file cannot be loaded without torch_xla and the call is a statement. Not covered:
    ``master_only=False`` and the functions of ``torch_xla.utils.serialization``, which are reported.
    """

    ID = "TPU938"
    NAME = "save-from-first-rank"
    FAMILY = "I"
    MESSAGE = "this saves through torch_xla, and every process has to reach it"
    TRIGGERS = (".save(", "save(", ".load(")
    REQUIRES = ("torch_xla",)
    PATTERN = r"\bxm\.save\(|xla_model\.save\(|xla_model import|serialization"
    COVERS = ("D8", "D9", "E5")
    VALID = ("import torch\nimport torch_xla\ntorch.save(x, path)\nmodel.save(path)\n",)
    INVALID = (
        Invalid(
            "import torch\nimport torch_xla.core.xla_model as xm\nif acc > best:\n    xm.save(model.state_dict(), path)\n",
            "import torch\nimport torch_xla.core.xla_model as xm\nif acc > best:\n    torch.save(model.state_dict(), path)\n",
        ),
        Invalid(
            "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\ndef main(i):\n"
            "    xm.save(model.state_dict(), path)\n\ntorch_xla.launch(main)\n",
            "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\ndef main(i):\n"
            "    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:\n"
            "        torch.save(model.state_dict(), path)\n\ntorch_xla.launch(main)\n",
        ),
        Invalid("import torch_xla.core.xla_model as xm\nxm.save(state, path, master_only=False)\n", None),
        Invalid("import torch_xla.utils.serialization as xser\nxser.save(state, path)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields saves through torch_xla."""
        calls = list(model_calls(module, "save"))
        fixes = self._fixes(module, calls) if needs_torch_xla(module) else {}
        for call in (*calls, *module.calls(*(f"torch_xla.utils.serialization.{n}" for n in ("save", "load")))):
            if aside(module, call):
                continue
            fix = fixes.get(call)
            note = None if fix else _NOTE if needs_torch_xla(module) else OPTIONAL
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=note)

    def _fixes(self, module: Module, calls: list[ast.Call]) -> dict[ast.Call, Fix]:
        found = {}
        for call in calls:
            statement = statement_call(module, call)
            extra = [k.arg for k in call.keywords if k.arg not in ("data", "file_or_path")]
            data, path = argument(call, "data", 0), argument(call, "file_or_path", 1)
            if statement is None or spread(call) or extra or len(call.args) > 2 or data is None or path is None:
                continue
            text = f"{spell(module, 'torch.save')}({module.text(data)}, {module.text(path)})"
            edits: list[Edit] = [module.replace(call, text)]
            if several_processes(module):
                edits += guard(module, [statement], first_rank_test(module))[statement].edits
            found[call] = imported(module, edits, "torch.save")
        return found
