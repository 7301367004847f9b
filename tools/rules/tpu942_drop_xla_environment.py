"""TPU942: environment variables of torch_xla set in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.module import Module, string
from tools.code.torch_xla import aside
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_VARIABLE = re.compile(
    r"XLA_(USE_BF16|DOWNCAST_BF16|DOWNCAST_FP16|USE_F16|USE_32BIT_LONG|USE_SPMD|NO_SPECIAL_SCALARS|IR_DEBUG|HLO_DEBUG"
    r"|DISABLE_FUNCTIONALIZATION|PERSISTENT_CACHE_PATH)|XRT_\w+|PJRT_DEVICE|PT_XLA_DEBUG\w*"
)


class DropXlaEnvironment(PythonRule):
    """``os.environ["XLA_USE_BF16"] = "1"`` and its like speak to torch_xla; torch_tpu does not read them.

    A precision is set in the program, with ``torch.autocast`` or ``.to(torch.bfloat16)``. Reported only, because a program
    that also runs with torch_xla needs the line.
    """

    ID = "TPU942"
    NAME = "drop-xla-environment"
    FAMILY = "I"
    GRADE = Grade.ADVICE
    MESSAGE = "a variable of torch_xla, which torch_tpu does not read"
    TRIGGERS = ("XLA_", "XRT_", "PJRT_DEVICE")
    REQUIRES = ("environ",)
    PATTERN = _VARIABLE.pattern
    COVERS = ("I4",)
    VALID = (
        "import os\nos.environ['XLA_FLAGS'] = '--xla_dump_to=/tmp'\n",
        "import os\nif os.environ.get('PJRT_DEVICE') == 'TPU':\n    pass\n",
    )
    INVALID = (
        Invalid("import os\nos.environ['XLA_USE_BF16'] = '1'\n", None),
        Invalid(
            "import os\nos.environ.setdefault('PJRT_DEVICE', 'TPU')\nos.environ.update(XRT_TPU_CONFIG='x')\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields assignments to the variables."""
        for node in module.nodes(ast.Constant):
            if _VARIABLE.fullmatch(string(node) or "") and _is_set(module, node) and not aside(module, node):
                yield Match(*module.span(node), note=_note(str(node.value)))
        for name in module.nodes(ast.keyword):
            if name.arg and _VARIABLE.fullmatch(name.arg):
                yield Match(*module.span(name), note=_note(name.arg))


def _note(variable: str) -> str:
    return "set the dtype in the program instead" if "16" in variable else "delete the line for torch_tpu"


def _is_set(module: Module, node: ast.Constant) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Store)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in ("setdefault", "putenv")
    return isinstance(parent, ast.Dict) and node in parent.keys
