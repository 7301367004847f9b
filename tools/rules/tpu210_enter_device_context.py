"""TPU210: the context manager that selects a CUDA device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import calls, elsewhere
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.rules.base import Invalid, Match, PythonRule

_NULL = "contextlib.nullcontext"


class EnterDeviceContext(PythonRule):
    """``with torch.cuda.device(i):`` fails without CUDA, and refuses a device of another type.

    Elsewhere ``contextlib.nullcontext()`` takes its place: a process has one TPU, so there is nothing to select.

    Not covered: the class used for anything but a ``with`` statement.
    """

    ID = "TPU210"
    NAME = "enter-device-context"
    FAMILY = "B"
    MESSAGE = "torch.cuda.device() fails without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda",)
    COVERS = ("B13",)
    VALID = (
        "import torch\nwith torch.device('cpu'):\n    f()\n",
        "import torch\nif x.is_cuda:\n    with torch.cuda.device(x.device):\n        f()\n",
        "import torch\ndef f(d: torch.cuda.device):\n    pass\n",
    )
    INVALID = (
        Invalid(
            "import torch\nwith torch.cuda.device(x.device):\n    kernel(x)\n",
            "import contextlib\n\nimport torch\n"
            "with torch.cuda.device(x.device) if torch.cuda.is_available() else contextlib.nullcontext():\n    kernel(x)\n",
        ),
        Invalid(
            "from contextlib import nullcontext\nimport torch\nwith torch.cuda.device(0), lock:\n    f()\n",
            "from contextlib import nullcontext\nimport torch\n"
            "with torch.cuda.device(0) if torch.cuda.is_available() else nullcontext(), lock:\n    f()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields ``with`` items that enter a CUDA device off the CUDA-only path."""
        for call, _ in calls(module, {"device"}):
            if isinstance(module.parent(call), ast.withitem):
                yield Match(*module.span(call), fix=elsewhere(module, call, f"{spell(module, _NULL)}()", _NULL))
