"""TPU211: ranges for NVIDIA's profiler."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.cuda_calls import calls, elsewhere
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.rules.base import Invalid, Match, PythonRule

_RECORD = "torch.profiler.record_function"
_NULL = "contextlib.nullcontext"


class MarkRange(PythonRule):
    """``torch.cuda.nvtx.range("step")`` fails without CUDA.

    It stays on CUDA, where NVIDIA's tools read it; elsewhere ``torch.profiler.record_function`` names the same range for
    PyTorch's profiler. ``torch.cuda.profiler.profile()`` has no counterpart and is left out there.

    Not covered: the ``nvtx`` package itself, which does not need CUDA.
    """

    ID = "TPU211"
    NAME = "mark-range"
    FAMILY = "B"
    MESSAGE = "NVTX ranges fail without CUDA"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "nvtx")
    REQUIRES = ("cuda",)
    COVERS = ("B11",)
    VALID = (
        "import nvtx\nwith nvtx.annotate('step'):\n    f()\n",
        "import torch\nif torch.cuda.is_available():\n    r = torch.cuda.nvtx.range_start('a')\n",
    )
    INVALID = (
        Invalid(
            "import torch\nwith torch.cuda.nvtx.range('step'):\n    f()\n",
            "import torch\nwith torch.cuda.nvtx.range('step') if torch.cuda.is_available() "
            "else torch.profiler.record_function('step'):\n    f()\n",
        ),
        Invalid(
            "import torch\nmark = torch.cuda.nvtx.range_start(name)\n",
            "import torch\nmark = torch.cuda.nvtx.range_start(name) if torch.cuda.is_available() else None\n",
        ),
        Invalid(
            "import torch\nwith torch.cuda.profiler.profile():\n    f()\n",
            "import contextlib\n\nimport torch\n"
            "with torch.cuda.profiler.profile() if torch.cuda.is_available() else contextlib.nullcontext():\n    f()\n",
        ),
        Invalid(
            "import torch\n\n\n@torch.cuda.nvtx.range('f')\ndef f():\n    pass\n",
            "import torch\n\n\n@torch.cuda.nvtx.range('f') if torch.cuda.is_available() "
            "else torch.profiler.record_function('f')\ndef f():\n    pass\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields ranges off the CUDA-only path."""
        for call, name in calls(module, {"nvtx.range", "nvtx.range_start", "profiler.profile"}):
            if name == "nvtx.range_start":
                fix = elsewhere(module, call, "None")
            elif name == "nvtx.range" and len(call.args) == 1 and not call.keywords:
                otherwise = f"{spell(module, _RECORD)}({module.text(call.args[0])})"
                fix = elsewhere(module, call, otherwise, _RECORD)
            else:
                fix = elsewhere(module, call, f"{spell(module, _NULL)}()", _NULL)
            yield Match(*module.span(call), fix=fix)
