"""TPU910: xFormers switched on in a pipeline."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import guarded, statement_of
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SWITCHES = frozenset({"enable_xformers_memory_efficient_attention", "set_use_memory_efficient_attention_xformers"})


class GuardXformersSwitch(PythonRule):
    """``pipe.enable_xformers_memory_efficient_attention()`` fails where xFormers has no kernel, or is not installed.

    Without it the model computes the same attention through PyTorch, so the switch is thrown on CUDA only.

    Not covered: the ``attention_op`` that some calls give, and switches thrown by an option of a script.
    """

    ID = "TPU910"
    NAME = "guard-xformers-switch"
    FAMILY = "F"
    MESSAGE = "xFormers computes on CUDA only"
    TRIGGERS = tuple(f"{name}(" for name in sorted(_SWITCHES))
    COVERS = ("F3", "F4")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    pipe.enable_xformers_memory_efficient_attention()\n",
        "class P:\n    def enable_xformers_memory_efficient_attention(self):\n        pass\n",
        "class P:\n    def set_use_memory_efficient_attention_xformers(self, valid):\n        def each(m):\n"
        "            m.set_use_memory_efficient_attention_xformers(valid)\n",
        "class P:\n    def f(self):\n        super().enable_xformers_memory_efficient_attention()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif args.xformers:\n    unet.enable_xformers_memory_efficient_attention()\n",
            "import torch\nif args.xformers:\n    if torch.cuda.is_available():\n"
            "        unet.enable_xformers_memory_efficient_attention()\n",
        ),
        Invalid("use = pipe.enable_xformers_memory_efficient_attention()\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the calls of the switch."""
        calls = [c for c in module.nodes(ast.Call) if _is_switch(c) and not on_cuda_path(module, c)]
        calls = [c for c in calls if not _hands_on(module, c)]
        fixes = guarded(module, [s for c in calls if (s := statement_of(module, c))])
        for call in calls:
            fix = fixes.get(module.statement(call))
            yield Match(*module.span(call), fix=fix, grade=None if fix else Grade.ADVICE)


def _is_switch(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _SWITCHES:
        return False
    return isinstance(function.value, ast.Name | ast.Attribute) and getattr(function.value, "id", "") != "self"


def _hands_on(module: Module, call: ast.Call) -> bool:
    """Whether the call stands in the switch of a class of the library itself, which hands it on to its parts."""
    functions = (a for a in module.ancestors(call) if isinstance(a, ast.FunctionDef))
    return any("xformers" in f.name or "mem_eff" in f.name for f in functions)
