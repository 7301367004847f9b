"""TPU224: CUDA devices chosen through the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NOTE = "on a TPU the variable is TPU_VISIBLE_DEVICES; torchrun gives each process its own device there"


class ReviewVisibleDevices(PythonRule):
    """``os.environ["CUDA_VISIBLE_DEVICES"] = ...`` chooses among CUDA's devices and does nothing on a TPU.

    Where each process takes a device of its own this way, something else must give it one. Reported once a file.

    Not covered: reading the variable, and emptying it to hide CUDA.
    """

    ID = "TPU224"
    NAME = "review-visible-devices"
    FAMILY = "B"
    GRADE = Grade.ADVICE
    MESSAGE = "this chooses among CUDA's devices and does nothing on a TPU"
    TRIGGERS = (_VARIABLE,)
    REASON = "found by hand in programs of other people, where each process takes a device of its own this way"
    VALID = (
        "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\n",
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'\n",
        "names = {'CUDA_VISIBLE_DEVICES': '0'}\n",
    )
    INVALID = (
        Invalid("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = str(rank % 8)\n", None),
        Invalid("import os\nos.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first choice of devices off the CUDA-only path."""
        for node in module.nodes(ast.Constant):
            if string(node) == _VARIABLE and _is_set(module, node) and not on_cuda_path(module, node):
                yield Match(*module.span(module.statement(node)), note=_NOTE)
                return


def _is_set(module: Module, node: ast.Constant) -> bool:
    """Whether the variable gets a value that names devices."""
    parent = module.parent(node)
    if isinstance(parent, ast.Subscript) and isinstance(assignment := module.parent(parent), ast.Assign):
        return parent in assignment.targets and string(assignment.value) not in ("", "-1")
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and len(parent.args) == 2:
        return parent.func.attr in ("setdefault", "putenv") and string(parent.args[1]) not in ("", "-1")
    return False
