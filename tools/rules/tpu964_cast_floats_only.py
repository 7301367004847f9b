"""TPU964: every value of a batch cast to float."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.edits import Fix
from tools.code.guards import dotted, on_cuda_path
from tools.code.literals import DEVICE_WORD
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_FLOATS = frozenset({"torch.float", "torch.float32"})
_NOTE = "integer labels and indices then stay integers, which may be what the rest expects or not"


class CastFloatsOnly(PythonRule):
    """``{k: v.float().to(device) for k, v in batch.items()}`` casts labels and indices as well.

    It is how float64 from NumPy is kept off devices that have none; a label that becomes a float then fails in the loss, or
    is rounded. Only floating values are cast: ``(v.float() if v.is_floating_point() else v)``.

    Unsafe, because a program may rely on the labels being floats. Not covered: casts in loops.
    """

    ID = "TPU964"
    NAME = "cast-floats-only"
    FAMILY = "K"
    GRADE = Grade.UNSAFE
    MESSAGE = "this casts integer labels and indices too"
    TRIGGERS = (".float()", "torch.float")
    REQUIRES = (".items()", ".to(|.cuda(")
    PATTERN = r"float[^{}]{0,300}\bfor\s+\w+\s*,\s*\w+\s+in\s[^{}\n]*\.items\(\)"
    COVERS = ("K10",)
    VALID = (
        "batch = {k: (v.float() if v.is_floating_point() else v).to(device) for k, v in batch.items()}\n",
        "images = [x.float() for x in images]\n",
        "state = {k: v.float() for k, v in model.state_dict().items()}\n",
    )
    INVALID = (
        Invalid(
            "batch = {k: v.float().to(device) for k, v in batch.items()}\n",
            "batch = {k: (v.float() if v.is_floating_point() else v).to(device) for k, v in batch.items()}\n",
            unsafe=True,
        ),
        Invalid(
            "import torch\nbatch = {k: v.to(device, dtype=torch.float32) for k, v in batch.items()}\n",
            "import torch\nbatch = {k: v.to(device, dtype=torch.float32 if v.is_floating_point() else v.dtype) for k, v in batch.items()}\n",
            unsafe=True,
        ),
        Invalid(
            "batch = {k: v.to(device).float() for k, v in batch.items()}\n",
            "batch = {k: (v.to(device).float() if v.is_floating_point() else v.to(device)) for k, v in batch.items()}\n",
            unsafe=True,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields comprehensions over a batch that move and cast every value."""
        for comprehension in module.nodes(ast.DictComp):
            source = comprehension.generators[0].iter
            if not _is_items(source) or len(comprehension.generators) != 1 or on_cuda_path(module, comprehension):
                continue
            value = comprehension.value
            target = comprehension.generators[0].target
            name = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
            if isinstance(name, ast.Name) and _moves(value):
                yield from self._casts(module, value, name.id)

    def _casts(self, module: Module, value: ast.expr, name: str) -> Iterator[Match]:
        test = f"{name}.is_floating_point()"
        for call in (n for n in ast.walk(value) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
            assert isinstance(call.func, ast.Attribute)
            root = _root(call)
            if root != name or test in module.text(value):
                continue
            if call.func.attr == "float" and not call.args:
                text = f"({module.text(call)} if {test} else {module.text(call.func.value)})"
                yield Match(*module.span(call), fix=Fix((module.replace(call, text),)), note=_NOTE)
            kind = keyword(call, "dtype")
            if call.func.attr == "to" and kind is not None and module.qualify(kind.value) in _FLOATS:
                text = f"{module.text(kind.value)} if {test} else {name}.dtype"
                yield Match(*module.span(call), fix=Fix((module.replace(kind.value, text),)), note=_NOTE)


def _is_items(value: ast.expr) -> bool:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "items":
        return False
    return dotted(value.func.value) is not None


def _moves(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            first = dotted(node.args[0]) if node.args else ""
            if node.func.attr == "cuda" or (first and DEVICE_WORD.search(first.rpartition(".")[2])):
                return True
    return False


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
