"""TPU203: the index of the current CUDA device."""

from __future__ import annotations

from collections.abc import Iterator

from tools.cuda_calls import calls, guarded, imported, statement_of
from tools.module import Module
from tools.rewrite import spell
from tools.rules.base import Invalid, Match, PythonRule

_INDEX = "torch.accelerator.current_device_index"


class QueryCurrentDevice(PythonRule):
    """``torch.cuda.current_device()`` fails without CUDA.

    ``torch.accelerator.current_device_index()`` is the same index for any accelerator, and PyTorch takes a bare index for
    the accelerator's device of that number.

    Not covered: an index that is put into a device string by other code than the expression around it.
    """

    ID = "TPU203"
    NAME = "query-current-device"
    FAMILY = "B"
    MESSAGE = "torch.cuda.current_device() fails without CUDA"
    TRIGGERS = ("cuda", "current_device")
    REQUIRES = ("cuda",)
    COVERS = ("B2",)
    VALID = (
        "import torch\nindex = torch.accelerator.current_device_index()\n",
        "import torch\nif torch.cuda.is_available():\n    print(torch.cuda.current_device())\n",
    )
    INVALID = (
        Invalid(
            "import torch\nmodel = FSDP(model, device_id=torch.cuda.current_device())\n",
            "import torch\nmodel = FSDP(model, device_id=torch.accelerator.current_device_index())\n",
        ),
        Invalid(
            "import torch as t\nprint(f'on {t.cuda.current_device()}')\n",
            "import torch as t\nprint(f'on {t.accelerator.current_device_index()}')\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.current_device()\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.current_device()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of ``current_device``; one whose result is thrown away only starts CUDA."""
        for call, _ in calls(module, {"current_device"}):
            statement = statement_of(module, call)
            if statement is not None:
                fix = guarded(module, [statement])[statement]
            else:
                fix = imported(module, [module.replace(call.func, spell(module, _INDEX))], _INDEX)
            yield Match(*module.span(call), fix=fix)
