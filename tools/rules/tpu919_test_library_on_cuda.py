"""TPU919: a CUDA library taken to be usable because it can be imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module, string
from tools.code.rewrite import cuda_test
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_LIBRARIES = frozenset(
    {"flash_attn", "flash_attn_interface", "xformers", "triton", "apex", "mamba_ssm", "causal_conv1d", "amp_C",
     "transformer_engine", "sageattention"}
)  # fmt: skip
_SPEC = ("importlib.util.find_spec",)


class LibraryOnCuda(PythonRule):
    """``HAS_XFORMERS = True`` after a successful import says that a package is installed, not that the device is CUDA.

    On a machine with a TPU and the package, the flag sends tensors into kernels that do not exist for them. The flag asks
    for CUDA too; these packages compute nowhere else, so the CPU and CUDA behave as before.

    Fixed where torch is imported above. Not covered: flags set in functions, and packages that were set to None.
    """

    ID = "TPU919"
    NAME = "test-library-on-cuda"
    FAMILY = "F"
    MESSAGE = "that the library can be imported does not mean that the device is CUDA"
    WHOLE_WORDS = True
    TRIGGERS = tuple(sorted(_LIBRARIES))
    PATTERN = r"\n[ \t]+(?=\w+ *= *True\b)\w*(?i:has|avail|enabl|use|install|is_)\w* *= *True\b|find_spec\( *[\"'](flash_attn|xformers|triton|apex|mamba_ssm|causal_conv1d|amp_C|transformer_engine|sageattention)"
    COVERS = ("F3", "F4", "F12", "A3")
    VALID = (
        "import torch\ntry:\n    import xformers\n    HAS = torch.cuda.is_available()\nexcept ImportError:\n    HAS = False\n",
        "import torch\ntry:\n    import wandb\n    HAS = True\nexcept ImportError:\n    HAS = False\n",
        "import torch\ntry:\n    import apex\n    has_apex = True\nexcept ImportError:\n    has_apex = False\n"
        "assert has_apex and torch.cuda.is_available()\n",
        "import importlib.util\nimport torch\nHAS = importlib.util.find_spec('triton') is not None and torch.cuda.is_available()\n",
    )
    INVALID = (
        Invalid(
            "import torch\ntry:\n    import xformers.ops\n    HAS_XFORMERS = True\nexcept ImportError:\n    HAS_XFORMERS = False\n",
            "import torch\ntry:\n    import xformers.ops\n    HAS_XFORMERS = torch.cuda.is_available()\n"
            "except ImportError:\n    HAS_XFORMERS = False\n",
        ),
        Invalid(
            "import importlib.util\nimport torch\nHAS = importlib.util.find_spec('triton') is not None\n",
            "import importlib.util\nimport torch\nHAS = importlib.util.find_spec('triton') is not None and torch.cuda.is_available()\n",
        ),
        Invalid(
            "try:\n    import triton\n    HAS_TRITON = True\nexcept ImportError:\n    HAS_TRITON = False\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields flags set after such an import, and tests whether such a package is there."""
        for statement in module.nodes(ast.Try):
            if any(_library(inner) for inner in statement.body) and not on_cuda_path(module, statement):
                for inner in [*statement.body, *statement.orelse]:
                    if _is_flag(inner) and not _asked_with_cuda(module, inner):
                        yield self._match(module, inner.value)  # type: ignore[attr-defined]
        for call in module.calls(*_SPEC):
            parent = module.parent(call)
            if not call.args or (string(call.args[0]) or "").partition(".")[0] not in _LIBRARIES:
                continue
            if isinstance(parent, ast.Compare) and isinstance(module.parent(parent), ast.Assign):
                yield self._match(module, parent)

    def _match(self, module: Module, value: ast.expr) -> Match:
        if not _torch_above(module, value):
            note = "let the flag ask torch.cuda.is_available() too"
            return Match(*module.span(value), grade=Grade.ADVICE, note=note)
        text = cuda_test(module)
        text = text if isinstance(value, ast.Constant) else f"{module.text(value)} and {text}"
        return Match(*module.span(value), fix=Fix((module.replace(value, text),)))


def _asked_with_cuda(module: Module, statement: ast.stmt) -> bool:
    """Whether every use of the flag asks for CUDA on its line too."""
    names = [t.id for t in statement.targets if isinstance(t, ast.Name)]  # type: ignore[attr-defined]
    word = re.compile(rf"\b({'|'.join(names)})\b(?!\s*=[^=])")
    used = [line for line in module.source.text.splitlines() if word.search(line)]
    return bool(used) and all("cuda" in line for line in used)


def _library(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] in _LIBRARIES for alias in statement.names)
    return (
        isinstance(statement, ast.ImportFrom)
        and not statement.level
        and (statement.module or "").partition(".")[0] in _LIBRARIES
    )


def _is_flag(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is True
        and all(
            isinstance(t, ast.Name) and re.search(r"(?i)has|avail|enabl|use|install|is_", t.id)
            for t in statement.targets
        )
    )


def _torch_above(module: Module, node: ast.expr) -> bool:
    name = (module.names.spelling("torch") or "").partition(".")[0]
    for statement in module.tree.body:
        if statement.lineno >= node.lineno:
            return False
        if isinstance(statement, ast.Import) and any(
            (a.asname or a.name.partition(".")[0]) == name for a in statement.names
        ):
            return bool(name)
    return False
