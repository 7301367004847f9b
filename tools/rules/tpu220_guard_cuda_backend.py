"""TPU220: settings of CUDA's libraries that fail without them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import chain, guarded, statement_of
from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_FAILING = ("preferred_linalg_library", "preferred_blas_library", "preferred_rocm_fa_library", "cufft_plan_cache")
_ATTENTION = frozenset({"torch.backends.cuda.sdp_kernel"})
_NOTE = (
    "the choice of kernels holds for every device, and what is left may not exist there; "
    "keep the plain (math) kernel allowed, or choose kernels on CUDA only"
)


class GuardCudaBackend(PythonRule):
    """``torch.backends.cuda.preferred_linalg_library(...)`` and the cuFFT plan cache fail without CUDA.

    Statements are kept for CUDA. Assignments such as ``torch.backends.cuda.matmul.allow_tf32 = True`` and cuDNN flags do
    nothing elsewhere and have no finding. Attention kernels chosen without the plain one are advice.

    Not covered: values read from the plan cache and used.
    """

    ID = "TPU220"
    NAME = "guard-cuda-backend"
    FAMILY = "B"
    MESSAGE = "this configures a library of CUDA and fails without it"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "SDPBackend")
    COVERS = ("O7",)
    VALID = (
        "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\ntorch.backends.cudnn.benchmark = True\n",
        "import torch\ntorch.backends.cuda.enable_flash_sdp(False)\n",
        "import torch\nwith torch.backends.cuda.sdp_kernel(enable_flash=True):\n    f()\n",
    )
    INVALID = (
        Invalid(
            "import torch\ntorch.backends.cuda.preferred_linalg_library('magma')\n",
            "import torch\nif torch.cuda.is_available():\n    torch.backends.cuda.preferred_linalg_library('magma')\n",
        ),
        Invalid(
            "import torch\ntorch.backends.cuda.cufft_plan_cache.clear()\n",
            "import torch\nif torch.cuda.is_available():\n    torch.backends.cuda.cufft_plan_cache.clear()\n",
        ),
        Invalid("import torch\nwith torch.backends.cuda.sdp_kernel(enable_math=False):\n    f()\n", None),
        Invalid(
            "from torch.nn.attention import sdpa_kernel, SDPBackend\nwith sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n    f()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields failing settings and restricting choices of attention kernels off the CUDA-only path."""
        found = [c for c in module.nodes(ast.Call) if self._fails(module, c) and not on_cuda_path(module, c)]
        fixes = guarded(module, [s for c in found if (s := statement_of(module, chain(module, c)))])
        for call in found:
            statement = statement_of(module, chain(module, call))
            if statement is not None:
                yield Match(*module.span(call), fix=fixes[statement])
            else:
                yield Match(*module.span(call), grade=Grade.ADVICE, note="ask for CUDA before reading this")
        for call in module.nodes(ast.Call):
            if _restricts(module, call) and not on_cuda_path(module, call):
                message = "attention kernels are chosen without the plain one, which other devices need"
                yield Match(*module.span(call), message, grade=Grade.ADVICE, note=_NOTE)

    def _fails(self, module: Module, call: ast.Call) -> bool:
        name = module.qualify(call.func) or ""
        return name.startswith("torch.backends.cuda.") and name.split(".")[3] in _FAILING


def _restricts(module: Module, call: ast.Call) -> bool:
    name = module.qualify(call.func)
    if name in _ATTENTION:
        math = keyword(call, "enable_math")
        return math is not None and isinstance(math.value, ast.Constant) and math.value.value is False
    if name == "torch.nn.attention.sdpa_kernel" and call.args:
        text = module.text(call.args[0])
        return "SDPBackend." in text and "MATH" not in text
    return False
