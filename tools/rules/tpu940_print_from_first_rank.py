"""TPU940: printing and delayed calls of torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.calls import argument
from tools.code.cuda_calls import imported
from tools.code.edits import Edit, Fix
from tools.code.module import Module
from tools.code.rewrite import guard
from tools.code.torch_xla import (
    OPTIONAL,
    RANK,
    aside,
    first_rank_test,
    model_calls,
    needs_torch_xla,
    several_processes,
    statement_call,
)
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NOTE = "call the function directly; print on the first rank only"


class PrintFromFirstRank(PythonRule):
    """``xm.master_print(...)`` prints on the first process; ``xm.add_step_closure(f, args=...)`` calls f after the step.

    torch_tpu cuts no steps, so the function is called at once, and printing asks for the rank where there may be several.

    Fixed where the file cannot be loaded without torch_xla and the call is a statement.
    """

    ID = "TPU940"
    NAME = "print-from-first-rank"
    FAMILY = "I"
    MESSAGE = "this prints, or calls a function, by way of torch_xla"
    TRIGGERS = ("master_print", "add_step_closure")
    REQUIRES = ("torch_xla",)
    COVERS = ("I7",)
    VALID = ("import torch_xla\nlog.master_print('x')\n",)
    INVALID = (
        Invalid(
            "import torch_xla.core.xla_model as xm\nxm.master_print('epoch', 1, flush=True)\n"
            "xm.add_step_closure(show, args=(device, loss))\n",
            "import torch_xla.core.xla_model as xm\nprint('epoch', 1, flush=True)\nshow(device, loss)\n",
            count=2,
        ),
        Invalid(
            "import torch\nimport torch_xla.distributed.xla_multiprocessing as xmp\nimport torch_xla.core.xla_model as xm\n"
            "xm.master_print(loss)\n",
            "import torch\nimport torch_xla.distributed.xla_multiprocessing as xmp\nimport torch_xla.core.xla_model as xm\n"
            "if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:\n    print(loss)\n",
        ),
        Invalid("import torch_xla.core.xla_model as xm\nxm.add_step_closure(show, args=given)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields prints and delayed calls."""
        for call in model_calls(module, "master_print", "add_step_closure"):
            if aside(module, call):
                continue
            fix = _fix(module, call) if needs_torch_xla(module) else None
            note = None if fix else _NOTE if needs_torch_xla(module) else OPTIONAL
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE, note=note)


def _fix(module: Module, call: ast.Call) -> Fix | None:
    statement = statement_call(module, call)
    if statement is None:
        return None
    if (module.qualify(call.func) or "").endswith("add_step_closure"):
        function, given = argument(call, "closure", 0), argument(call, "args", 1)
        if function is None or not isinstance(given, ast.Tuple | None):
            return None
        values = ", ".join(module.text(element) for element in (given.elts if given else ()))
        return Fix((module.replace(call, f"{module.text(function)}({values})"),))
    edits: list[Edit] = [module.replace(call.func, "print")]
    if not several_processes(module):
        return Fix(tuple(edits))
    edits += guard(module, [statement], first_rank_test(module))[statement].edits
    return imported(module, edits, RANK)
