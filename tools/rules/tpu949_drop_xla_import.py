"""TPU949: imports of torch_xla."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.module import Module
from tools.code.torch_xla import dropped, imports_torch_xla
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_NOTE = "replace what is still used of it; torch_tpu needs no import, and the two must not share a process"


class DropXlaImport(PythonRule):
    """An import of torch_xla that nothing uses any more, after its calls were replaced.

    ``import torch_xla`` also registers torch_xla's device and takes hold of the TPU, so it must not stay beside torch_tpu.
    Imports at module level whose names occur nowhere else go; the first that is still needed is reported.

    Not covered: package files (``__init__.py``), whose names others may import, and imports under a condition.
    """

    ID = "TPU949"
    NAME = "drop-xla-import"
    FAMILY = "I"
    MESSAGE = "torch_xla is another route to the TPU"
    TRIGGERS = ("torch_xla",)
    PATTERN = r"^[ \t]*(from|import) +torch_xla\b"
    SCOPE = Scope.FILE
    COVERS = ("I9", "C14")
    VALID = (
        "import torch\nname = 'torch_xla'\n",
        "try:\n    import torch_xla\nexcept ImportError:\n    torch_xla = None\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\nx = torch.ones(2)\n",
            "import torch\n\nx = torch.ones(2)\n",
            count=2,
        ),
        Invalid("import torch_xla.core.xla_model as xm\nmetrics = xm.get_memory_info(d)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields unused imports, or the first used one."""
        statements = [
            s for s in module.tree.body if isinstance(s, ast.Import | ast.ImportFrom) and imports_torch_xla(s)
        ]
        if not statements:
            return
        used = _names(module)
        idle = [s for s in statements if not used & {_bound(alias) for alias in s.names}]
        fixes = dropped(module, idle) if not module.source.relative.endswith("__init__.py") else {}
        for statement in fixes:
            yield Match(*module.span(statement), "nothing uses this import of torch_xla", fix=fixes[statement])
        rest = [s for s in statements if s not in fixes]
        if rest:
            yield Match(*module.span(rest[0]), grade=Grade.ADVICE, note=_NOTE)


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _names(module: Module) -> set[str]:
    """Names that are read somewhere, and words in strings that may be read later."""
    found = {n.id for n in ast.walk(module.tree) if isinstance(n, ast.Name)}
    found |= {"torch_xla"} if re.search(r"[\"']xla(:\d+)?[\"']", module.source.text) else set()
    return found | {"*"}
