"""TPU209: CUDA events."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import elsewhere, imported, uses
from tools.code.module import Module
from tools.code.older import is_for_older
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_EVENT = "torch.Event"
_KNOWN = frozenset({"enable_timing", "blocking", "interprocess"})
_TIMING = (
    "on TorchTPU elapsed_time() is measured on the host and includes dispatch and compilation; "
    "for numbers that count, warm up first and measure between two calls of torch.accelerator.synchronize()"
)
_POSITIONAL = "give the event's options by keyword; torch.Event takes the device first"


class RecordEvent(PythonRule):
    """``torch.cuda.Event(enable_timing=True)`` fails without CUDA; ``torch.Event`` is the same for any accelerator.

    On CUDA it is a CUDA event. It works with streams of both kinds, so it does not matter whether streams are rewritten.

    Not covered: events with options given by position, and events shared with C++ code (``.cuda_event``).
    """

    ID = "TPU209"
    NAME = "record-event"
    FAMILY = "B"
    MESSAGE = "torch.cuda.Event fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "Event")
    REQUIRES = ("cuda",)
    COVERS = ("B2", "R1")
    VALID = (
        "import torch\nstart = torch.Event(enable_timing=True)\n",
        "import torch\nif torch.cuda.is_available():\n    start = torch.cuda.Event()\n",
        "import torch\nstart: torch.cuda.Event\n",
    )
    INVALID = (
        Invalid(
            "import torch\nstart = torch.cuda.Event(enable_timing=True)\nend = torch.cuda.Event(enable_timing=True)\n",
            "import torch\nstart = torch.Event(enable_timing=True)\nend = torch.Event(enable_timing=True)\n",
            count=2,
        ),
        Invalid(
            "from torch.cuda import Event\ndone = Event()\n",
            "import torch\ndone = torch.Event()\n",
        ),
        Invalid("import torch\nstart = torch.cuda.Event(True)\n", None),
        Invalid(
            "import torch\nif isinstance(x, torch.cuda.Event):\n    pass\n",
            "import torch\nif isinstance(x, torch.Event):\n    pass\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of the class, and tests for it, off the CUDA-only path."""
        for node, _ in uses(module, {"Event"}):
            call = module.parent(node)
            if not isinstance(call, ast.Call):
                continue
            fix = imported(module, [module.replace(node, spell(module, _EVENT))], _EVENT)
            if is_for_older(module):
                if call.func is node and not call.args and all(k.arg in _KNOWN for k in call.keywords):
                    fix = elsewhere(
                        module, call, module.text(call).replace(module.text(node), spell(module, _EVENT), 1), _EVENT
                    )
                else:
                    continue
            if call.func is not node:
                if isinstance(call.func, ast.Name) and call.func.id == "isinstance":
                    yield Match(*module.span(node), fix=fix)
            elif call.args or any(k.arg not in _KNOWN for k in call.keywords):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_POSITIONAL)
            else:
                timing = any(k.arg == "enable_timing" for k in call.keywords)
                yield Match(*module.span(call), fix=fix, note=_TIMING if timing else None)
