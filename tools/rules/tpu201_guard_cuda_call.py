"""TPU201: statements that only make sense on CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.cuda_api import handled_by
from tools.code.cuda_calls import calls, elsewhere, guarded, statement_of
from tools.code.module import Module
from tools.rules.base import Invalid, Match, PythonRule

NAMES = handled_by("TPU201")


class GuardCudaCall(PythonRule):
    """``torch.cuda.set_device(rank)`` and other statements that configure CUDA and fail where there is none.

    They are kept for CUDA behind ``if torch.cuda.is_available():``. A process has one TPU, so nothing takes their place.
    Calls that do nothing without CUDA (``empty_cache``, ``manual_seed``) are left alone.

    Not covered: calls whose result is used for more than being None.
    """

    ID = "TPU201"
    NAME = "guard-cuda-call"
    FAMILY = "B"
    MESSAGE = "this call configures CUDA and fails where there is none"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "nvtx")
    REQUIRES = ("cuda",)
    COVERS = ("A7", "B5", "B11", "D14")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.set_device(rank)\n",
        "import torch\ntorch.cuda.empty_cache()\ntorch.cuda.manual_seed_all(1)\ntorch.cuda.seed()\n",
        "import torch\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cuda.matmul.allow_tf32 = True\n",
        "import torch\nassert device.type == 'cuda'\ntorch.cuda.set_device(device)\n",
        "def set_device(torch):\n    torch.cuda.set_device(0)\n",
    )
    INVALID = (
        Invalid(
            "import torch\n\n\ndef setup(rank):\n    torch.cuda.set_device(rank)  # one each\n    run(rank)\n",
            "import torch\n\n\ndef setup(rank):\n    if torch.cuda.is_available():\n"
            "        torch.cuda.set_device(rank)  # one each\n    run(rank)\n",
        ),
        Invalid(
            "from torch import cuda\ncuda.set_device(0)\ncuda.ipc_collect()\n",
            "from torch import cuda\nif cuda.is_available():\n    cuda.set_device(0)\n    cuda.ipc_collect()\n",
            count=2,
        ),
        Invalid(
            "import torch\nfrom torch.cuda import nvtx\nnvtx.range_push('step')\nx = step(x)\nnvtx.range_pop()\n",
            "import torch\nfrom torch.cuda import nvtx\nif torch.cuda.is_available():\n    nvtx.range_push('step')\n"
            "x = step(x)\nif torch.cuda.is_available():\n    nvtx.range_pop()\n",
            count=2,
        ),
        Invalid(
            "import torch\nfinish = lambda: torch.cuda.ipc_collect()\n",
            "import torch\nfinish = lambda: (torch.cuda.ipc_collect() if torch.cuda.is_available() else None)\n",
        ),
        Invalid(
            "import torch\nx = 1; torch.cuda.set_device(0)\n",
            "import torch\nx = 1; torch.cuda.set_device(0) if torch.cuda.is_available() else None\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of the guarded names off the CUDA-only path."""
        found = [call for call, _ in calls(module, NAMES)]
        statements = [s for call in found if (s := statement_of(module, call))]
        fixes = guarded(module, statements)
        for call in found:
            statement = statement_of(module, call)
            fix = fixes[statement] if statement else elsewhere(module, call, "None")
            yield Match(*module.span(call), fix=fix)
