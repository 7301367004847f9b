"""TPU207: memory of CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from tools.code.cuda_api import handled_by
from tools.code.cuda_calls import (
    by_release,
    calls,
    device_argument,
    elsewhere,
    guarded,
    imported,
    is_portable,
    on_accelerator_path,
    statement_of,
)
from tools.code.edits import Edit, Fix
from tools.code.module import Module
from tools.code.older import is_for_older
from tools.code.rewrite import AVAILABLE, alone, cuda_test, off_cuda, parenthesised, spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_MEASURES = (2, 9)
"""The first release whose ``torch.accelerator`` measures memory."""
_TWIN = {
    "memory_cached": "memory_reserved",
    "max_memory_cached": "max_memory_reserved",
    "reset_max_memory_allocated": "reset_peak_memory_stats",
    "reset_max_memory_cached": "reset_peak_memory_stats",
}
_NOTE = "the device is given as a number of CUDA's; say which device is meant elsewhere, or leave the argument out"


class MeasureMemory(PythonRule):
    """``torch.cuda.max_memory_allocated()`` is a silent 0 without CUDA, and ``reset_peak_memory_stats()`` fails there.

    ``torch.accelerator`` measures whatever device there is; on a machine without one the value stays the 0 it was.

    Not covered: CUDA's own tables (``memory_stats``, ``memory_summary``); accelerators whose allocator keeps no
    statistics, for which ``torch.accelerator`` raises (MPS in PyTorch 2.13).
    """

    ID = "TPU207"
    NAME = "measure-memory"
    FAMILY = "B"
    MESSAGE = "this measures the memory of CUDA alone; elsewhere it is a silent 0 or an error"
    WHOLE_WORDS = True
    TRIGGERS = (
        "cuda",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "memory_summary",
        "memory_cached",
        "mem_get_info",
    )
    REQUIRES = ("cuda",)
    COVERS = ("B4", "B5")
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    print(torch.cuda.max_memory_allocated())\n",
        "import torch\npeak = torch.accelerator.max_memory_allocated() if torch.accelerator.is_available() else 0\n",
        "import torch\ntorch.cuda.empty_cache()\n",
        "import torch\ndef free(d):\n    total = torch.cuda.get_device_properties(d).total_memory\n"
        "    return total - torch.cuda.memory_reserved(d)\n",
    )
    INVALID = (
        Invalid(
            "import torch\npeak = torch.cuda.max_memory_allocated() / 2**20\n",
            "import torch\npeak = (torch.accelerator.max_memory_allocated() if torch.accelerator.is_available() else 0) / 2**20\n",
        ),
        Invalid(
            "import torch\nprint(f'{torch.cuda.memory_allocated(device=device) / 1e9:.2f} GB')\n",
            "import torch\nprint(f'{(torch.accelerator.memory_allocated(device) if torch.accelerator.is_available() else 0)"
            " / 1e9:.2f} GB')\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.reset_peak_memory_stats()\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.reset_peak_memory_stats()\n",
        ),
        Invalid(
            "import torch\ndef reset():\n    torch.cuda.reset_max_memory_cached()\n    torch.cuda.reset_max_memory_allocated()\n"
            "    f()\n",
            "import torch\ndef reset():\n    if torch.accelerator.is_available():\n"
            "        torch.accelerator.reset_peak_memory_stats()\n    f()\n",
            count=2,
        ),
        Invalid(
            "import torch\nfree, total = torch.cuda.mem_get_info()\n",
            "import torch\nfree, total = torch.cuda.mem_get_info() if torch.cuda.is_available() "
            "else torch.accelerator.get_memory_info()\n",
        ),
        Invalid("import torch\nused = torch.cuda.memory_allocated(rank)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls of the memory functions off the CUDA-only path."""
        found = [use for use in calls(module, handled_by(self.ID)) if not _beside_properties(module, use[0])]
        inner: dict[ast.stmt, list[Edit]] = {}
        for call, name in found:
            statement = statement_of(module, call)
            if statement is not None and is_portable(device_argument(call)) and name != "mem_get_info":
                inner[statement] = [module.replace(call, _reset(module, call, name))]
        own = {s: _besides(module, call, name) for call, name in found if (s := statement_of(module, call)) in inner}
        again = _repeated(module, inner)
        fixes = guarded(module, [s for s in inner if s not in again], AVAILABLE, inner)
        fixes |= {s: fix for s, fix in own.items() if fix is not None and s is not None} | again
        for call, name in found:
            fix = fixes.get(module.statement(call))
            if fix is None and name == "mem_get_info":
                if is_portable(device_argument(call)):
                    fix = elsewhere(module, call, _twin(module, call, "get_memory_info"), AVAILABLE)
            elif fix is None and not is_portable(device_argument(call)) and statement_of(module, call):
                fix = guarded(module, [module.statement(call)])[module.statement(call)]
            elif fix is None and is_portable(device_argument(call)):
                text, edits = _measured(module, call, name)
                fix = imported(module, [module.replace(call, text), *edits], AVAILABLE)
            advice = None if fix else Grade.ADVICE
            yield Match(*module.span(call), fix=fix, grade=advice, note=None if fix else _NOTE)


def _beside_properties(module: Module, call: ast.Call) -> bool:
    """Whether it is set against what CUDA says of a device in the same function: that is one question (TPU219)."""
    function = module.function(call)
    return function is not None and ".total_memory" in module.text(function)


def _repeated(module: Module, inner: dict[ast.stmt, list[Edit]]) -> dict[ast.stmt, Fix]:
    """Fixes that take out a statement which becomes the same as the one before it."""
    found = {}
    for first, second in pairwise(sorted(inner, key=lambda s: s.lineno)):
        same = inner[first][0].replacement == inner[second][0].replacement
        if same and (first.end_lineno or 0) + 1 == second.lineno and first.col_offset == second.col_offset:
            if alone(module, second) and second.end_lineno == second.lineno < len(module.source.starts):
                starts = module.source.starts
                found[second] = Fix((Edit(starts[second.lineno - 1], starts[second.lineno], ""),))
    return found


def _measured(module: Module, call: ast.Call, name: str) -> tuple[str, list[Edit]]:
    twin = _twin(module, call, name)
    if is_for_older(module, _MEASURES):
        return off_cuda(module, call, twin, _MEASURES)
    if on_accelerator_path(module, call):
        return twin, []
    return parenthesised(module, call, f"{twin} if {spell(module, AVAILABLE)}() else 0"), []


def _reset(module: Module, call: ast.Call, name: str) -> str:
    twin = _twin(module, call, name)
    if not is_for_older(module, _MEASURES):
        return twin
    return f"{module.text(call)} if {cuda_test(module)} else {twin}"


def _besides(module: Module, call: ast.Call, name: str) -> Fix | None:
    """A reset in older releases, which has CUDA's call beside the other."""
    statement = statement_of(module, call)
    if statement is None or not is_for_older(module, _MEASURES):
        return None
    return by_release(module, statement, _twin(module, call, name))


def _twin(module: Module, call: ast.Call, name: str) -> str:
    device = device_argument(call)
    function = spell(module, f"torch.accelerator.{_TWIN.get(name, name)}")
    return f"{function}({module.text(device) if device is not None else ''})"
