"""TPU206: waiting for CUDA alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import (
    by_release,
    calls,
    device_argument,
    editable,
    elsewhere,
    every_use,
    guarded,
    imported,
    is_portable,
    statement_of,
)
from tools.code.device_tests import type_text
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted, is_cuda_test, on_cuda_path
from tools.code.module import Module, string
from tools.code.older import is_for_older
from tools.code.rewrite import AVAILABLE, accelerator_test, add_branch, alone, spell
from tools.rules.base import Invalid, Match, PythonRule

_WAIT = "torch.accelerator.synchronize"


class SynchronizeAccelerator(PythonRule):
    """``torch.cuda.synchronize()`` fails without CUDA, and where a test for CUDA skips it, a TPU is timed before it is done.

    ``torch.accelerator.synchronize()`` waits for any device; ``if torch.accelerator.is_available():`` keeps a machine
    without one running. A test whose only purpose is the call is changed with it.

    Not covered: a call among other CUDA-only code, which stays with it.
    """

    ID = "TPU206"
    NAME = "synchronize-accelerator"
    FAMILY = "B"
    MESSAGE = "this waits for CUDA alone; other devices are timed before they are done, or the call fails"
    WHOLE_WORDS = True
    TRIGGERS = ("cuda", "synchronize")
    REQUIRES = ("cuda",)
    COVERS = ("R1", "R3")
    VALID = (
        "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.synchronize()\n",
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n    torch.cuda.ipc_collect()\n",
        "import torch\nif use_cuda and x.is_cuda:\n    torch.cuda.synchronize()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif torch.accelerator.is_available():\n    torch.cuda.empty_cache()\n    torch.cuda.synchronize()\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.cuda.empty_cache()\n"
            "    torch.accelerator.synchronize()\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.synchronize()  # wait\nt = time.time()\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.synchronize()  # wait\nt = time.time()\n",
        ),
        Invalid(
            "import torch\nif device_type == 'cuda':\n    torch.cuda.synchronize()  # wait\n",
            "import torch\nif device_type not in ('cpu', 'meta'):\n    torch.accelerator.synchronize()  # wait\n",
        ),
        Invalid(
            "import torch\nif device == 'cuda':\n    torch.cuda.synchronize()\n",
            "import torch\nif torch.device(device).type not in ('cpu', 'meta'):\n    torch.accelerator.synchronize()\n",
        ),
        Invalid(
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize(device)\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.synchronize(device)\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.synchronize(device=local_rank)\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize(device=local_rank)\n"
            "elif torch.accelerator.is_available():\n    torch.accelerator.synchronize()\n",
        ),
        Invalid(
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize(rank)  # all\nf()\n",
            "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize(rank)  # all\n"
            "elif torch.accelerator.is_available():\n    torch.accelerator.synchronize()\nf()\n",
        ),
        Invalid(
            "import torch\nHAS = hasattr(torch, 'accelerator')\n\ndef wait():\n    torch.cuda.synchronize()\n",
            "import torch\n\nDEVICE_TYPE = (\n    torch.accelerator.current_accelerator().type\n"
            '    if hasattr(torch, "accelerator") and torch.accelerator.is_available()\n'
            '    else ("cuda" if torch.cuda.is_available() else "cpu")\n)\n'
            "HAS = hasattr(torch, 'accelerator')\n\ndef wait():\n    if torch.cuda.is_available():\n"
            '        torch.cuda.synchronize()\n    elif DEVICE_TYPE != "cpu":\n        torch.accelerator.synchronize()\n',
        ),
        Invalid(
            "import torch\nwait = lambda: torch.cuda.synchronize()\n",
            "import torch\nwait = lambda: (torch.accelerator.synchronize() if torch.accelerator.is_available() else None)\n",
        ),
        Invalid(
            "import torch\ntorch.cuda.current_stream().synchronize()\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.synchronize()\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls off the CUDA-only path, and tests for CUDA around nothing but such calls."""
        yield from self._unguarded(module)
        yield from self._guarded(module)

    def _unguarded(self, module: Module) -> Iterator[Match]:
        found = [(call, call) for call, _ in calls(module, {"synchronize"})]
        found += _of_streams(module)
        inner: dict[ast.stmt, list[Edit]] = {}
        for whole, call in found:
            if (statement := statement_of(module, whole)) is not None:
                inner[statement] = [_waiting(module, whole, call)]
        own = self._by_release(module, found)
        inner = {s: edits for s, edits in inner.items() if s not in own}
        fixes = guarded(module, inner, AVAILABLE, inner) | own
        for whole, call in found:
            statement = statement_of(module, whole)
            fix = fixes[statement] if statement else self._expression(module, whole, call)
            yield Match(*module.span(whole), fix=fix)

    def _by_release(self, module: Module, found: list[tuple[ast.Call, ast.Call]]) -> dict[ast.stmt, Fix]:
        """Fixes of statements that keep CUDA's call beside the other, by statement."""
        fixes: dict[ast.stmt, Fix] = {}
        for whole, call in found:
            if (statement := statement_of(module, whole)) is not None and not _is_portable(module, call):
                if (fix := by_release(module, statement, f"{spell(module, _WAIT)}()")) is not None:
                    fixes[statement] = fix
        return fixes

    def _expression(self, module: Module, whole: ast.Call, call: ast.Call) -> Fix:
        if not _is_portable(module, call):
            return elsewhere(module, whole, "None")
        text = f"({_wait(module, call)} if {spell(module, AVAILABLE)}() else None)"
        return imported(module, [module.replace(whole, text)], AVAILABLE, _WAIT)

    def _besides(self, module: Module, test: ast.If, waits: list[ast.Call | None]) -> Iterator[Match]:
        """A second branch beside one that waits for CUDA in a way of CUDA's own, or of older releases."""
        last = test.body[-1]
        new, needed = _any_accelerator(module, test.test)
        if new is None or len(waits) != 1 or waits[0] is None or not alone(module, last):
            return
        text = f"{spell(module, _WAIT)}()"
        edits = [add_branch(module, test, f"elif {new}:", text), *needed]
        yield Match(*module.span(waits[0]), fix=imported(module, edits, AVAILABLE))

    def _guarded(self, module: Module) -> Iterator[Match]:
        for test in module.nodes(ast.If):
            if test.orelse or not is_cuda_test(module, test.test) or on_cuda_path(module, test):
                continue
            waits = [_waits(module, statement) for statement in test.body]
            if any(call and not _is_portable(module, call) for call in waits):
                yield from self._besides(module, test, waits)
                continue
            new, needed = _any_accelerator(module, test.test)
            if new is None or not all(waits):
                continue
            edits = [module.replace(test.test, new), *needed]
            edits += [_waiting(module, call, call) for call in waits if call]
            first = next(call for call in waits if call)
            yield Match(*module.span(first), fix=imported(module, list(dict.fromkeys(edits)), AVAILABLE))


def _waits(module: Module, statement: ast.stmt) -> ast.Call | None:
    if isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
        if module.qualify(call.func) == "torch.cuda.synchronize":
            return call
    return None


def _of_streams(module: Module) -> list[tuple[ast.Call, ast.Call]]:
    """``torch.cuda.current_stream().synchronize()`` and the inner call."""
    found = []
    for node, name in every_use(module):
        inner = module.parent(node)
        attribute = module.parent(inner) if isinstance(inner, ast.Call) else None
        outer = module.parent(attribute) if isinstance(attribute, ast.Attribute) else None
        if name not in ("current_stream", "default_stream") or not isinstance(inner, ast.Call):
            continue
        if isinstance(outer, ast.Call) and isinstance(attribute, ast.Attribute) and attribute.attr == "synchronize":
            if not on_cuda_path(module, node) and editable(module, outer):
                found.append((outer, inner))
    return found


def _wait(module: Module, call: ast.Call) -> str:
    device = device_argument(call)
    return f"{spell(module, _WAIT)}({module.text(device) if device is not None else ''})"


def _waiting(module: Module, whole: ast.Call, call: ast.Call) -> Edit:
    if _is_portable(module, call):
        return module.replace(whole, _wait(module, call))
    test = f"{spell(module, 'torch.cuda.is_available')}()"
    return module.replace(whole, f"{module.text(whole)} if {test} else {spell(module, _WAIT)}()")


def _is_portable(module: Module, call: ast.Call) -> bool:
    """Whether ``torch.accelerator`` takes the call's place on every device and in every release that is allowed."""
    return is_portable(device_argument(call)) and not is_for_older(module)


def _any_accelerator(module: Module, test: ast.expr) -> tuple[str | None, list[Edit]]:
    """The test for any accelerator that takes the place of one for CUDA, None for tests that say more than that."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        for literal, other in ((test.comparators[0], test.left), (test.left, test.comparators[0])):
            if string(literal) == "cuda":
                quote = module.text(literal)[-1]
                kind = _kind(module, test, other)
                return (f"{kind} not in ({quote}cpu{quote}, {quote}meta{quote})" if kind else None), []
        return None, []
    if isinstance(test, ast.Call | ast.Compare) or dotted(test):
        return accelerator_test(module, test)
    return None, []


def _kind(module: Module, test: ast.Compare, compared: ast.expr) -> str | None:
    """The compared device type; a device that may be an object is no string, and never equal to "cpu"."""
    name = dotted(compared) or ""
    return module.text(compared) if name.endswith("type") else type_text(module, test, spell(module, "torch.device"))
