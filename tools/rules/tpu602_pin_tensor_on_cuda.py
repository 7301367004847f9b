"""TPU602: a tensor pinned whatever the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Edit, Fix
from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import cuda_test, import_edits, parenthesised
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule


class PinTensorOnCuda(PythonRule):
    """``x.pin_memory()`` raises without an accelerator and on a TPU without a host allocator.

    The tensor is pinned on CUDA and taken as it is elsewhere; the copy that follows is the same.

    Not covered: a receiver too long to write twice, which is left to a person.
    """

    ID = "TPU602"
    NAME = "pin-tensor-on-cuda"
    FAMILY = "G"
    MESSAGE = "pin_memory() is for copies to CUDA and raises elsewhere"
    WHOLE_WORDS = True
    TRIGGERS = (".pin_memory(",)
    COVERS = ("G1",)
    VALID = (
        "import torch\nif torch.cuda.is_available():\n    x = x.pin_memory()\n",
        "import torch\nx = x.pin_memory() if torch.cuda.is_available() else x\n",
        "def collate(batch):\n    return batch.to(device)\n",
        "class Batch:\n    def pin_memory(self):\n        self.x = self.x.pin_memory()\n        return self\n",
    )
    INVALID = (
        Invalid(
            "import torch\nx, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device)\n",
            "import torch\nx, y = (x.pin_memory() if torch.cuda.is_available() else x).to(device, non_blocking=True), "
            "(y.pin_memory() if torch.cuda.is_available() else y).to(device)\n",
            count=2,
        ),
        Invalid(
            "import torch\nx = x.pin_memory() if not x.is_pinned() else x\ny = y.pin_memory() if a or b else y\n",
            "import torch\nx = x.pin_memory() if not x.is_pinned() and torch.cuda.is_available() else x\n"
            "y = y.pin_memory() if (a or b) and torch.cuda.is_available() else y\n",
            count=2,
        ),
        Invalid(
            "import torch\nself.buffer = torch.from_numpy(a).pin_memory()\n",
            "import torch\nself.buffer = torch.from_numpy(a).pin_memory() if torch.cuda.is_available() "
            "else torch.from_numpy(a)\n",
        ),
        Invalid(
            "import torch\nx = torch.stack([torch.from_numpy(piece.astype(np.int64)) for piece in pieces[start:stop] "
            "if keep(piece)]).pin_memory()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields pinned tensors off the CUDA-only path."""
        for call in module.nodes(ast.Call):
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr != "pin_memory" or on_cuda_path(module, call):
                continue
            if module.qualify(function) is not None or _of_super(function) or _in_pin_memory(module, call):
                continue
            start, end = module.span(call)
            receiver = module.text(function.value)
            choice = module.parent(call)
            if isinstance(choice, ast.IfExp) and choice.body is call and module.text(choice.orelse) == receiver:
                yield Match(start, end, fix=Fix((_narrowed(module, choice.test), *import_edits(module))))
                continue
            if len(receiver) > 80 or "\n" in receiver:
                yield Match(start, end, grade=Grade.ADVICE, note="pin it only where torch.cuda.is_available()")
                continue
            text = f"{module.text(call)} if {cuda_test(module)} else {receiver}"
            edit = module.replace(call, parenthesised(module, call, text))
            yield Match(start, end, fix=Fix((edit, *import_edits(module))))


def _narrowed(module: Module, test: ast.expr) -> Edit:
    """An edit that makes the test of ``x.pin_memory() if test else x`` hold on CUDA only."""
    loose = isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr) or (
        isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
    )
    text = f"({module.text(test)})" if loose else module.text(test)
    return module.replace(test, f"{text} and {cuda_test(module)}")


def _in_pin_memory(module: Module, call: ast.Call) -> bool:
    """Whether the call is in a ``pin_memory`` method, which a loader calls only where it pins."""
    return any(isinstance(a, ast.FunctionDef) and a.name == "pin_memory" for a in module.ancestors(call))


def _of_super(function: ast.Attribute) -> bool:
    value = function.value
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
