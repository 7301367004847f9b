"""TPU936: torch_xla's loaders."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tools.code.calls import argument
from tools.code.edits import Edit, Fix
from tools.code.guards import dotted
from tools.code.module import Module
from tools.code.torch_xla import OPTIONAL, aside, needs_torch_xla
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule, Scope

_HOME = "torch_xla.distributed.parallel_loader"
_WRAPPERS = (f"{_HOME}.MpDeviceLoader", f"{_HOME}.ParallelLoader")
_NOTE = "iterate over the DataLoader itself, and move each batch with .to(device)"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Loop:
    """A loop over wrapped batches: the loop, the names a batch is unpacked into, and the expression iterated over."""

    loop: ast.For
    batch: tuple[str, ...]
    iterated: ast.expr


class IterateLoader(PythonRule):
    """``pl.MpDeviceLoader(loader, device)`` moves batches to torch_xla's device from background threads.

    The plain loader takes its place, and each loop over it begins with a line that moves the batch. Loops are followed
    into functions of the file that are given the loader. ``ParallelLoader`` is exhausted after one epoch as well.

    Fixed where the file cannot be loaded without torch_xla, every loop over the loader is in view and unpacks a batch into
    names, and the device is a name. Other uses are reported.
    """

    ID = "TPU936"
    NAME = "iterate-loader"
    FAMILY = "I"
    MESSAGE = "this loader feeds torch_xla's device"
    TRIGGERS = ("MpDeviceLoader", "ParallelLoader")
    REQUIRES = ("torch_xla",)
    SCOPE = Scope.FILE
    COVERS = ("G4", "G5")
    VALID = ("import torch_xla\nfrom own import MpDeviceLoader\nloader = MpDeviceLoader(data, device)\n",)
    INVALID = (
        Invalid(
            "import torch_xla.distributed.parallel_loader as pl\n\ndef main(device):\n"
            "    loader = pl.MpDeviceLoader(train_loader, device)\n    for i, (x, y) in enumerate(loader):\n        step(x, y)\n",
            "import torch_xla.distributed.parallel_loader as pl\n\ndef main(device):\n"
            "    loader = train_loader\n    for i, (x, y) in enumerate(loader):\n"
            "        x, y = x.to(device), y.to(device)\n        step(x, y)\n",
        ),
        Invalid(
            "import torch_xla.distributed.parallel_loader as pl\n\ndef main(device):\n"
            "    def epoch(loader):\n        for x, y in loader:\n            step(x, y)\n\n"
            "    wrapped = pl.ParallelLoader(train_loader, [device]).per_device_loader(device)\n    epoch(wrapped)\n",
            "import torch_xla.distributed.parallel_loader as pl\n\ndef main(device):\n"
            "    def epoch(loader):\n        for x, y in loader:\n            x, y = x.to(device), y.to(device)\n"
            "            step(x, y)\n\n"
            "    wrapped = train_loader\n    epoch(wrapped)\n",
        ),
        Invalid(
            "import torch_xla.distributed.parallel_loader as pl\nloader = pl.MpDeviceLoader(data, device)\nTrainer(loader).fit()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the wrappers."""
        for call in module.calls(*_WRAPPERS):
            if aside(module, call):
                continue
            whole = _whole(module, call)
            device = _device(whole if whole is not call else call)
            note = _NOTE if needs_torch_xla(module) else OPTIONAL
            loops = _loops(module, whole) if needs_torch_xla(module) and device and call.args else None
            if not loops:
                yield Match(*module.span(call), grade=Grade.ADVICE, note=note)
                continue
            edits = [module.replace(whole, module.text(call.args[0]))]
            edits += [_move(module, loop, str(device)) for loop in loops]
            yield Match(*module.span(call), fix=Fix(tuple(edits)))


def _whole(module: Module, call: ast.Call) -> ast.Call:
    """The wrapper with ``.per_device_loader(device)`` behind it."""
    attribute = module.parent(call)
    outer = module.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    if isinstance(outer, ast.Call) and isinstance(attribute, ast.Attribute) and attribute.attr == "per_device_loader":
        return outer
    return call


def _device(call: ast.Call) -> str | None:
    per_device = isinstance(call.func, ast.Attribute) and call.func.attr == "per_device_loader"
    value = argument(call, "device", 0 if per_device else 1)
    return dotted(value) if value is not None else None


def _loops(module: Module, value: ast.Call) -> list[_Loop] | None:
    """Every loop over the wrapped loader, None where a use of it is out of view."""
    parent = module.parent(value)
    if isinstance(parent, ast.For) and parent.iter is value:
        loop = _loop(parent, value)
        return [loop] if loop else None
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None
    return _uses(module, parent.targets[0].id, _scope(module, parent), depth=0)


def _scope(module: Module, node: ast.AST) -> ast.AST:
    return next((a for a in module.ancestors(node) if isinstance(a, _FUNCTIONS)), module.tree)


def _uses(module: Module, name: str, scope: ast.AST, depth: int) -> list[_Loop] | None:
    parents = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
    found: list[_Loop] = []
    for node in ast.walk(scope):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)):
            continue
        parent = parents.get(node)
        holder = parents.get(parent) if parent is not None else None
        if isinstance(parent, ast.Call) and node in parent.args and isinstance(parent.func, ast.Name):
            if parent.func.id == "len":
                continue
            if parent.func.id in ("enumerate", "tqdm") and isinstance(holder, ast.For):
                loop = _loop(holder, node)
                more = [loop] if loop else None
            else:
                more = _followed(module, parent, parent.args.index(node), depth)
        else:
            loop = _loop(parent, node) if isinstance(parent, ast.For) and parent.iter is node else None
            more = [loop] if loop else None
        if more is None:
            return None
        found += more
    return found


def _followed(module: Module, call: ast.Call, index: int, depth: int) -> list[_Loop] | None:
    """The loops of a function of this file that is given the loader."""
    if depth > 2 or not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    functions = [n for n in ast.walk(module.tree) if isinstance(n, _FUNCTIONS) and n.name == name]
    if len(functions) != 1 or index >= len(functions[0].args.args):
        return None
    return _uses(module, functions[0].args.args[index].arg, functions[0], depth + 1)


def _loop(loop: ast.For, iterated: ast.expr) -> _Loop | None:
    target = loop.target
    if isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "id", "") == "enumerate":
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        target = target.elts[1]
    if not isinstance(target, ast.Tuple) or not all(isinstance(element, ast.Name) for element in target.elts):
        return None
    return _Loop(loop, tuple(element.id for element in target.elts if isinstance(element, ast.Name)), iterated)


def _move(module: Module, loop: _Loop, device: str) -> Edit:
    first = loop.loop.body[0]
    source = module.source
    place = source.starts[first.lineno - 1]
    margin = source.text[place : source.offset(first.lineno, first.col_offset)]
    moved = ", ".join(f"{name}.to({device})" for name in loop.batch)
    return Edit(place, place, f"{margin}{', '.join(loop.batch)} = {moved}{source.newline}")
