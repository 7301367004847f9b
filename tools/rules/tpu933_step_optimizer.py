"""TPU933: torch_xla's optimizer step."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.calls import spread
from tools.code.edits import Fix
from tools.code.module import Module, keyword
from tools.code.torch_xla import OPTIONAL, aside, model_calls, names_something, needs_torch_xla, several_processes
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_AVERAGES = "xm.optimizer_step averages gradients over the processes; wrap the model in DistributedDataParallel instead"


class StepOptimizer(PythonRule):
    """``xm.optimizer_step(optimizer)`` averages the gradients of all processes, steps, and cuts torch_xla's graph.

    ``optimizer.step()`` is what is left of it in one process. With several, the model has to be wrapped in
    ``DistributedDataParallel``, which averages in the backward pass, so there the fix is unsafe.

    Fixed where the file cannot be loaded without torch_xla. Not covered: ``optimizer_args=``, ``xm.reduce_gradients``;
    both are reported.
    """

    ID = "TPU933"
    NAME = "step-optimizer"
    FAMILY = "I"
    MESSAGE = "this steps the optimizer through torch_xla"
    TRIGGERS = ("optimizer_step", "reduce_gradients")
    REQUIRES = ("torch_xla",)
    COVERS = ("I7",)
    VALID = (
        "import torch_xla\nclass T:\n    def f(self):\n        self.optimizer_step(1)\n",
        "import lightning\nlightning.optimizer_step(optimizer)\n",
    )
    INVALID = (
        Invalid(
            "import torch_xla.core.xla_model as xm\nxm.optimizer_step(optimizer, barrier=True)\n",
            "import torch_xla.core.xla_model as xm\noptimizer.step()\n",
        ),
        Invalid(
            "import torch_xla\nfrom torch_xla.core import xla_model as xm\n\ndef main(i):\n    xm.optimizer_step(self.opt)\n\n"
            "torch_xla.launch(main)\n",
            "import torch_xla\nfrom torch_xla.core import xla_model as xm\n\ndef main(i):\n    self.opt.step()\n\n"
            "torch_xla.launch(main)\n",
            unsafe=True,
        ),
        Invalid(
            "import torch_xla.core.xla_model as xm\nxm.optimizer_step(o, optimizer_args={'closure': c})\n"
            "xm.reduce_gradients(o)\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the steps."""
        for call in model_calls(module, "optimizer_step", "reduce_gradients"):
            if aside(module, call):
                continue
            optimizer = call.args[0] if call.args else None
            plain = names_something(optimizer) and not spread(call) and keyword(call, "optimizer_args") is None
            steps = (module.qualify(call.func) or "").endswith("optimizer_step")
            if optimizer is None or not (plain and steps and needs_torch_xla(module)):
                note = _AVERAGES if needs_torch_xla(module) else OPTIONAL
                yield Match(*module.span(call), grade=Grade.ADVICE, note=note)
                continue
            several = several_processes(module)
            fix = Fix((module.replace(call, f"{module.text(optimizer)}.step()"),))
            grade = Grade.UNSAFE if several else None
            yield Match(*module.span(call), fix=fix, grade=grade, note=_AVERAGES if several else None)
