"""TPU218: the version of CUDA taken apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_PARSERS = frozenset({"parse", "Version", "float", "int", "LooseVersion", "StrictVersion"})


class ReadCudaVersion(PythonRule):
    """``torch.version.cuda`` is None without CUDA, so taking it apart fails.

    Not covered: the version kept in a variable and taken apart later.
    """

    ID = "TPU218"
    NAME = "read-cuda-version"
    FAMILY = "B"
    GRADE = Grade.ADVICE
    MESSAGE = "torch.version.cuda is None without CUDA, so this fails"
    WHOLE_WORDS = True
    TRIGGERS = ("version.cuda", "cudnn.version")
    COVERS = ("B13",)
    VALID = (
        "import torch\nif gpu_condition:\n    most = 1024 if float(torch.version.cuda) < 9.5 else 2048\n",
        "import torch\nprint(torch.version.cuda)\n",
        "import torch\nok = torch.version.cuda and float(torch.version.cuda) > 11\n",
        "import torch\nif torch.version.cuda is not None:\n    major = torch.version.cuda.split('.')[0]\n",
    )
    INVALID = (
        Invalid("import torch\nmajor = torch.version.cuda.split('.')[0]\n", None),
        Invalid("import torch\nif float(torch.version.cuda) >= 11:\n    pass\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields places that need the version to be text, off the CUDA-only path."""
        for node in module.nodes(ast.Attribute):
            if module.qualify(node) == "torch.version.cuda" and _needs_text(module, node):
                if not on_cuda_path(module, node) and not _under_gpu(module, node):
                    note = "ask `torch.version.cuda is not None and ...`, or branch on torch.cuda.is_available()"
                    yield Match(*module.span(node), note=note)


def _needs_text(module: Module, node: ast.expr) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        function = parent.func
        return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in _PARSERS
    if isinstance(parent, ast.Compare):
        return isinstance(parent.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    return isinstance(parent, ast.Attribute | ast.Subscript)


def _under_gpu(module: Module, node: ast.AST) -> bool:
    """Whether a test around it is a flag that is named for a GPU."""
    tests = (parent.test for parent in module.ancestors(node) if isinstance(parent, ast.If))
    return any(isinstance(test, ast.Name | ast.Attribute) and "gpu" in module.text(test).lower() for test in tests)
