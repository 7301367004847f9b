"""TPU221: calls of torch.accelerator on a machine without one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.cuda_calls import guarded, statement_of
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import AVAILABLE
from tools.rules.base import Invalid, Match, PythonRule

_NAMES = (
    "synchronize",
    "empty_cache",
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "set_device_index",
    "set_device_idx",
    "memory.empty_cache",
    "memory.reset_peak_memory_stats",
)
_ASKED = re.compile(r"accelerator|device|cuda|tpu|gpu", re.IGNORECASE)


class GuardAcceleratorCall(PythonRule):
    """``torch.accelerator.synchronize()`` and ``empty_cache()`` raise where there is no accelerator.

    So a program that was made neutral no longer runs on the CPU. The statement is put behind
    ``torch.accelerator.is_available()``; with an accelerator nothing changes.

    Calls under any test of a device, and in a ``try``, are left alone. Not covered: calls whose value is used.
    """

    ID = "TPU221"
    NAME = "guard-accelerator-call"
    FAMILY = "B"
    MESSAGE = "this raises on a machine without an accelerator"
    TRIGGERS = ("accelerator",)
    PATTERN = r"synchronize|empty_cache|_memory_stats|set_device_i"
    COVERS = ("B6", "B7")
    VALID = (
        "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.empty_cache()\n",
        "import torch\nif device.type != 'cpu':\n    torch.accelerator.synchronize()\n",
        "import torch\ntry:\n    torch.accelerator.synchronize()\nexcept RuntimeError:\n    pass\n",
        "accelerator.synchronize()\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\n\ndef clean():\n    torch.accelerator.synchronize()\n    torch.accelerator.empty_cache()\n",
            "import torch\n\n\ndef clean():\n    if torch.accelerator.is_available():\n"
            "        torch.accelerator.synchronize()\n        torch.accelerator.empty_cache()\n",
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields statements that nothing keeps from a machine without an accelerator."""
        calls = list(module.calls(*(f"torch.accelerator.{name}" for name in _NAMES)))
        found = {c: s for c in calls if (s := statement_of(module, c)) and not _kept(module, c)}
        fixes = guarded(module, list(found.values()), AVAILABLE)
        for call, statement in found.items():
            yield Match(*module.span(call), fix=fixes[statement])


def _kept(module: Module, call: ast.Call) -> bool:
    for parent in module.ancestors(call):
        if isinstance(parent, ast.If | ast.While) and _ASKED.search(module.text(parent.test)):
            return True
        if isinstance(parent, ast.Try):
            return True
    return on_cuda_path(module, call)
