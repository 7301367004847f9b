"""TPU918: CUDA extensions built in any case."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.guards import is_cuda_test, on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import parenthesised, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_EXTENSION = "torch.utils.cpp_extension.CUDAExtension"
_HOME = "torch.utils.cpp_extension.CUDA_HOME"
_LOADERS = ("torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline")
_NOTE = "assumes that the package works without the extension; say so where it is imported"
_NOTE_ADVICE = "build it where torch.utils.cpp_extension.CUDA_HOME is set, and give other devices the Python code"


class BuildWithCuda(PythonRule):
    """``ext_modules=[CUDAExtension(...)]`` needs the CUDA compiler, so the package cannot be installed without.

    The list is empty where PyTorch finds no CUDA toolkit. Whether the package then works depends on its own fallback, so
    the fix is unsafe. Extensions compiled when the program runs (``load``, with CUDA sources) are reported.
    """

    ID = "TPU918"
    NAME = "build-with-cuda"
    FAMILY = "F"
    GRADE = Grade.UNSAFE
    MESSAGE = "this extension is compiled for CUDA, whether CUDA is there or not"
    TRIGGERS = ("CUDAExtension(", "load(", "load_inline(")
    REQUIRES = ("cpp_extension",)
    COVERS = ("F14", "F15")
    VALID = (
        "from torch.utils.cpp_extension import CUDAExtension, CUDA_HOME\nif CUDA_HOME is not None:\n    e = [CUDAExtension('a', s)]\n",
        "from torch.utils.cpp_extension import load\nload('a', ['a.cpp'])\n",
    )
    INVALID = (
        Invalid(
            "from setuptools import setup\nfrom torch.utils.cpp_extension import BuildExtension, CUDAExtension\n"
            "setup(name='a', ext_modules=[CUDAExtension('a', ['a.cu'])], cmdclass={})\n",
            "import torch\nfrom setuptools import setup\nfrom torch.utils.cpp_extension import BuildExtension, CUDAExtension\n"
            "setup(name='a', ext_modules=[CUDAExtension('a', ['a.cu'])] if torch.utils.cpp_extension.CUDA_HOME else [], cmdclass={})\n",
            unsafe=True,
            path="setup.py",
        ),
        Invalid(
            "from torch.utils.cpp_extension import load\nkernel = load('a', sources=['a.cpp', 'a.cu'])\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the extensions."""
        for call in module.calls(_EXTENSION):
            if on_cuda_path(module, call) or _asked(module, call):
                continue
            holder = module.parent(call)
            keyword = module.parent(holder) if isinstance(holder, ast.List) else None
            if isinstance(holder, ast.List) and isinstance(keyword, ast.keyword) and keyword.arg == "ext_modules":
                text = f"{module.text(holder)} if {spell(module, _HOME)} else []"
                fix = imported(module, [module.replace(holder, parenthesised(module, holder, text))], _HOME)
                yield Match(*module.span(call), fix=fix, note=_NOTE)
            else:
                yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE_ADVICE)
        for call in module.calls(*_LOADERS):
            if ".cu" in module.text(call) or "cuda" in module.text(call):
                if not on_cuda_path(module, call) and not _asked(module, call):
                    yield Match(*module.span(call), grade=Grade.ADVICE, note=_NOTE_ADVICE)


def _asked(module: Module, call: ast.Call) -> bool:
    """Whether a test around the call asks for CUDA in the words setup files use."""
    for parent in module.ancestors(call):
        if isinstance(parent, ast.If | ast.IfExp):
            text = module.text(parent.test)
            if "CUDA" in text or "cuda" in text or is_cuda_test(module, parent.test):
                return True
    return False
