"""TPU911: a library that has CUDA kernels only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.guards import CUDA_LIBRARIES, dotted, is_cuda_test, on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Valid

_LIBRARIES = {
    "flash_attn": "torch.nn.functional.scaled_dot_product_attention; its layout is (batch, heads, length, dim), "
    "flash_attn's (batch, length, heads, dim)",
    "flash_attn_interface": "torch.nn.functional.scaled_dot_product_attention, with heads before length",
    "xformers": "torch.nn.functional.scaled_dot_product_attention; xformers has heads after length",
    "triton": "the same computation in PyTorch, or a Pallas kernel; triton asks for a driver when a decorator runs",
    "bitsandbytes": "torch.optim.AdamW and bfloat16 weights; mind the memory",
    "apex": "torch.optim.AdamW, torch.nn.LayerNorm and torch.autocast; mind the defaults of the optimizer",
    "transformer_engine": "torch.nn layers under torch.autocast",
    "deepspeed": "fully_shard or DistributedDataParallel",
    "cupy": "torch or numpy",
    "pycuda": "torch",
    "numba.cuda": "the same computation in PyTorch's own operators, or for a loss its form on the CPU",
    "tensorrt": "torch.compile",
    "torch_tensorrt": "torch.compile",
    "torch_scatter": "torch.scatter_reduce or index_add_ with a fixed size",
    "torch_sparse": "dense operations; TorchTPU has no sparse ones",
    "spconv": "dense convolution",
    "pynvml": "nothing: it reads NVIDIA's driver; keep it behind a test for CUDA",
    "mamba_ssm": "its reference implementation in PyTorch",
    "causal_conv1d": "torch.nn.functional.conv1d",
    "megatron": "fully_shard or DTensor; Megatron-LM is for CUDA",
    "vllm_flash_attn": "torch.nn.functional.scaled_dot_product_attention",
}


_CPU_TOO = frozenset({"torch_scatter", "torch_sparse"})
"""Libraries that compute on the CPU as well."""


class ReplaceCudaLibrary(PythonRule):
    """Imports of libraries whose kernels exist for CUDA only (flash_attn, xformers, Triton, apex, bitsandbytes and others).

    That such a package can be imported says nothing about the device, so a ``try: import`` around it is no test; the use
    must depend on the device and have an equivalent in PyTorch beside it. The note names the equivalent.

    Reported only. Imports on a CUDA-only path and under ``TYPE_CHECKING`` are fine, and so are those under a test for the
    library or for its use (``if is_bnb_available():``), those that only read its version, and those of a package
    in itself or in a file named for it.
    """

    ID = "TPU911"
    NAME = "replace-cuda-library"
    FAMILY = "F"
    GRADE = Grade.ADVICE
    MESSAGE = "this library has kernels for CUDA only"
    WHOLE_WORDS = True
    TRIGGERS = tuple(sorted({name.partition(".")[0] for name in _LIBRARIES}))
    PATTERN = rf"(?:import|from)\b[^\n#]*(?:\b(?:{'|'.join(TRIGGERS)})\b|\\\n)"
    COVERS = ("F1", "F3", "F4", "F5", "F6", "F7", "F9", "F11", "F12", "F13", "F19", "F20")
    VALID = (
        "from mypackage.triton import helper\nfrom .apex import amp\n",
        "import torch\nif torch.cuda.is_available():\n    import triton\n",
        "if is_bnb_available():\n    import bitsandbytes as bnb\n",
        "def grad(p):\n    if deepspeed_config() is not None:\n        import deepspeed\n        return deepspeed.utils.get(p)\n",
        Valid("def build():\n    import deepspeed\n", "strategies/deepspeed.py"),
        Valid("from deepspeed.report import main\n", "deepspeed-1.0.data/scripts/report.py"),
        "if is_te_pytorch_available():\n    import transformer_engine as te\n",
        "def dequantize_bnb_weight(w):\n    import bitsandbytes as bnb\n    return bnb.f(w)\n",
        "class MegatronLMPlugin:\n    def f(self):\n        from megatron.training import arguments\n",
        Valid("import bitsandbytes as bnb\n", "tuners/bnb.py"),
        "def env():\n    import xformers\n    print(xformers.__version__)\n",
        Valid("from deepspeed.utils import logger\n", "deepspeed/runtime/zero.py"),
        "try:\n    import xformers\n    HAS_XFORMERS = True\nexcept ImportError:\n    HAS_XFORMERS = False\n",
        "try:\n    import apex\n    optimizers['fused'] = apex.optimizers.FusedAdam\nexcept ImportError:\n    pass\n",
        Valid("import tensorrt as trt\n", "tools/trt.py"),
        "def build(fused):\n    if fused:\n        try:\n            import apex\n            norm = apex.FusedLayerNorm\n"
        "        except:\n            norm = None\n",
        Valid("from numba import cuda\n", "loss/cuda_utils/reduce.py"),
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cupy\n",
    )
    INVALID = (
        Invalid("from flash_attn import flash_attn_func\n", None),
        Invalid("def build(flash):\n    if flash:\n        from flash_attn import flash_attn_func\n", None),
        Invalid("import tensorrt as trt\nimport torch\nx = torch.ones(2).cuda()\n", None),
        Invalid("try:\n    import xformers.ops as xops\nexcept ImportError:\n    xops = None\n", None),
        Invalid("import triton\nimport triton.language as tl\nfrom apex import amp\n", None, count=2),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first import of each such library off the CUDA-only path."""
        seen: set[str] = set()
        statements: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
        for statement in sorted(statements, key=lambda s: s.lineno):
            library = _library(statement)
            if library is None or library in seen or _for_types(module, statement):
                continue
            if on_cuda_path(module, statement) and (library not in CUDA_LIBRARIES or _under_cuda(module, statement)):
                continue
            if _sets_flag(module, statement, library) or _CUDA_FOLDER.search(module.source.relative):
                continue
            if library in ("tensorrt", "torch_tensorrt") and _TENSORRT.search(module.source.relative):
                continue
            if _under_test(module, statement, library) or _for_version(module, statement) or _is_own(module, library):
                continue
            seen.add(library)
            note = f"use {_LIBRARIES[library]}"
            if any(isinstance(parent, ast.Try) for parent in module.ancestors(statement)):
                note += "; that the import works does not mean that the device is CUDA"
            said = "no kernels for a TPU" if library in _CPU_TOO else "kernels for CUDA only"
            yield Match(*module.span(statement), f"{library} has {said}", note=note)


_TENSORRT = re.compile(r"(?i)(^|[/_])(trt|tensorrt)")
_CUDA_FOLDER = re.compile(r"(?i)(^|[/_])cuda([/_.]|$)")
"""Files that are for CUDA by their name."""


def _sets_flag(module: Module, statement: ast.stmt, library: str) -> bool:
    """Whether all that an optional import decides is a flag, which TPU919 looks at, or what apex adds where it works.

    apex is built with CUDA's compiler, so that it cannot be imported on a machine for TPUs.
    """
    parent = module.parent(statement)
    if not isinstance(parent, ast.Try) or not any(_is_for_absence(module, h) for h in parent.handlers):
        return False
    if library == "apex":
        return True
    rest = [s for s in [*parent.body, *parent.orelse] if s is not statement]
    return (
        bool(rest)
        and all(isinstance(s, ast.Assign) and isinstance(s.value, ast.Constant | ast.Call) for s in rest)
        and any(isinstance(s, ast.Assign) and _is_answer(module, s.value) for s in rest)
    )


def _is_for_absence(module: Module, handler: ast.ExceptHandler) -> bool:
    return handler.type is None or re.search("ImportError|Exception|NotFound", module.text(handler.type)) is not None


def _is_answer(module: Module, value: ast.expr) -> bool:
    """Whether a value is True, or the question for CUDA that TPU919 put in its place."""
    return module.text(value) == "True" or (isinstance(value, ast.Call) and "is_available" in module.text(value))


def _library(statement: ast.Import | ast.ImportFrom) -> str | None:
    if isinstance(statement, ast.ImportFrom):
        if statement.level or not statement.module:
            return None
        names = [statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)]
    else:
        names = [alias.name for alias in statement.names]
    for name in names:
        for library in _LIBRARIES:
            if name == library or name.startswith(library + "."):
                return library
    return None


def _for_types(module: Module, statement: ast.stmt) -> bool:
    tests = (parent.test for parent in module.ancestors(statement) if isinstance(parent, ast.If))
    return any("TYPE_CHECKING" in module.text(test) for test in tests)


def _under_cuda(module: Module, statement: ast.stmt) -> bool:
    """Whether a test for CUDA stands around an import; such a library makes what is around it CUDA-only by itself."""
    return any(isinstance(p, ast.If) and is_cuda_test(module, p.test) for p in module.ancestors(statement))


_SHORT = {
    "bitsandbytes": ("bnb",),
    "deepspeed": ("zero3", "zero_stage"),
    "transformer_engine": ("_te_", "has_te"),
    "flash_attn_interface": ("flash_attn", "flash_attention"),
}
"""How else tests name a library."""


def _under_test(module: Module, statement: ast.stmt, library: str) -> bool:
    """Whether a test around an import asks for the library or for its use, so that nobody else comes to it."""
    child: ast.AST = statement
    for parent in module.ancestors(statement):
        if isinstance(parent, ast.FunctionDef) and any(
            word in parent.name for word in (library, *_SHORT.get(library, ()))
        ):
            return True
        if isinstance(parent, ast.ClassDef) and library.replace("_", "") in parent.name.lower():
            return True
        if isinstance(parent, ast.If) and child in parent.body:
            test = module.text(parent.test).lower()
            if any(word in test for word in (library.lower(), *_SHORT.get(library, ()))):
                return True
        child = parent
    return False


def _for_version(module: Module, statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether a plain import in a function is there to read the library's version and nothing else."""
    function = module.function(statement)
    if function is None or not isinstance(statement, ast.Import) or len(statement.names) != 1:
        return False
    name = statement.names[0].asname or statement.names[0].name
    attributes = [n for n in ast.walk(function) if isinstance(n, ast.Attribute) and dotted(n.value) == name]
    return bool(attributes) and all(a.attr in ("__version__", "__file__") for a in attributes)


def _is_own(module: Module, library: str) -> bool:
    """Whether the file is part of the library itself, or is named for it, so that only its users come to it."""
    *folders, name = module.source.relative.split("/")
    return any(folder.partition("-")[0] == library.partition(".")[0] for folder in folders) or name in (
        f"{library}.py",
        f"_{library}.py",
    )
