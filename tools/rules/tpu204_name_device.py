"""TPU204: the name of the CUDA device."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.cuda_calls import calls, elsewhere
from tools.code.edits import Fix
from tools.code.module import Module
from tools.code.older import is_for_older
from tools.code.rewrite import CURRENT, device_type, spell
from tools.rules.base import Invalid, Match, PythonRule


class NameDevice(PythonRule):
    """``torch.cuda.get_device_name(...)`` fails without CUDA; elsewhere the accelerator's type is the name.

    Not covered: decisions taken from the name (``"A100" in name``), which then simply do not hold.
    """

    ID = "TPU204"
    NAME = "name-device"
    FAMILY = "B"
    MESSAGE = "torch.cuda.get_device_name() fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "get_device_name")
    REQUIRES = ("cuda",)
    COVERS = ("B13",)
    VALID = ("import torch\nif torch.cuda.is_available():\n    print(torch.cuda.get_device_name(0))\n",)
    INVALID = (
        Invalid(
            "import torch\nprint('device', torch.cuda.get_device_name(0))\n",
            "import torch\nprint('device', torch.cuda.get_device_name(0) if torch.cuda.is_available() "
            "else str(torch.accelerator.current_accelerator()))\n",
        ),
        Invalid(
            "import torch\nlog(f'on {torch.cuda.get_device_name()}')\n",
            "import torch\nlog(f'on {(torch.cuda.get_device_name() if torch.cuda.is_available() "
            "else str(torch.accelerator.current_accelerator()))}')\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of ``get_device_name`` off the CUDA-only path."""
        for call, _ in calls(module, {"get_device_name"}):
            if is_for_older(module):
                name, edits = device_type(module, call)
                fix = elsewhere(module, call, name)
                yield Match(*module.span(call), fix=Fix((*fix.edits, *edits)))
            else:
                yield Match(
                    *module.span(call), fix=elsewhere(module, call, f"str({spell(module, CURRENT)}())", CURRENT)
                )
