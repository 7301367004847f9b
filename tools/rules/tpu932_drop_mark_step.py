"""TPU932: torch_xla's ends of steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import guarded
from tools.code.edits import Edit
from tools.code.module import Module
from tools.code.rewrite import AVAILABLE, spell
from tools.code.torch_xla import OPTIONAL, aside, dropped, needs_torch_xla, statement_call
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_CUTS = ("torch_xla.core.xla_model.mark_step", "torch_xla.sync")
_WAITS = ("torch_xla.core.xla_model.wait_device_ops",)
_SYNCHRONIZE = "torch.accelerator.synchronize"
_OTHERWISE = "torch_tpu runs operations as they come; there is nothing to cut"


class DropMarkStep(PythonRule):
    """``xm.mark_step()`` sends what torch_xla has gathered to the device; torch_tpu runs operations as they come.

    The call goes; ``xm.wait_device_ops()`` becomes ``torch.accelerator.synchronize()``.

    Fixed where the file cannot be loaded without torch_xla. Nothing is said where a test, a function or a class around the
    call is for torch_xla alone. Not covered: ``with torch_xla.step():``, which is reported.
    """

    ID = "TPU932"
    NAME = "drop-mark-step"
    FAMILY = "I"
    MESSAGE = "this cuts or awaits torch_xla's graph, which torch_tpu does not have"
    TRIGGERS = ("mark_step", "wait_device_ops", ".sync(", ".step(")
    REQUIRES = ("torch_xla",)
    PATTERN = r"mark_step|wait_device_ops|xla\.(sync|step)\(|from torch_xla import"
    COVERS = ("I7",)
    VALID = (
        "import torch_xla\noptimizer.step()\n",
        "import tracker\ntracker.mark_step()\n",
        "if is_torch_xla_available():\n    import torch_xla.core.xla_model as xm\n\n    XLA_AVAILABLE = True\n\ndef run():\n"
        "    if XLA_AVAILABLE:\n        xm.mark_step()\n",
        "class XLAStrategy:\n    def save(self):\n        import torch_xla.core.xla_model as xm\n        xm.mark_step()\n",
    )
    INVALID = (
        Invalid(
            "import torch_xla.core.xla_model as xm\nfor x in data:\n    step(x)\n    xm.mark_step()  # cut\nprint(1)\n",
            "import torch_xla.core.xla_model as xm\nfor x in data:\n    step(x)\nprint(1)\n",
        ),
        Invalid(
            "import torch_xla\nif last:\n    torch_xla.sync()\n",
            "import torch_xla\nif last:\n    pass\n",
        ),
        Invalid(
            "import torch\nimport torch_xla.core.xla_model as xm\nxm.wait_device_ops()\n",
            "import torch\nimport torch_xla.core.xla_model as xm\nif torch.accelerator.is_available():\n"
            "    torch.accelerator.synchronize()\n",
        ),
        Invalid(
            "import time\n\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\n\ndef f():\n    torch_xla.sync()\n"
            "    xm.wait_device_ops()\n",
            "import time\n\nimport torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\n\ndef f():\n    if torch.accelerator.is_available():\n"
            "        torch.accelerator.synchronize()\n",
            count=2,
        ),
        Invalid("import torch_xla\nwith torch_xla.step():\n    run()\n", None),
        Invalid("def f():\n    import torch_xla.core.xla_model as xm\n    xm.mark_step()\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the calls that cut and those that wait."""
        own = needs_torch_xla(module)
        cuts, waits = list(module.calls(*_CUTS)), list(module.calls(*_WAITS))
        gone = dropped(module, [s for call in cuts if own and (s := statement_call(module, call))])
        inner: dict[ast.stmt, list[Edit]] = {
            statement: [module.replace(call, f"{spell(module, _SYNCHRONIZE)}()")]
            for call in waits
            if own and (statement := statement_call(module, call))
        }
        fixes = gone | guarded(module, inner, AVAILABLE, inner)
        for call in (*cuts, *waits, *module.calls("torch_xla.step")):
            if aside(module, call):
                continue
            fix = fixes.get(module.statement(call))
            note = None if fix else _OTHERWISE if own else OPTIONAL
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=note)
