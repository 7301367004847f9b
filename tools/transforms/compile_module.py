"""Gives the model to torch.compile where the device is neither CPU nor CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import off_cpu_and_cuda
from tools.code.edits import Edit
from tools.code.module import Module
from tools.code.rewrite import add_below, alone
from tools.code.training_loops import steps
from tools.transforms.base import Advice, Proposal, Subject, Transform

_OFF = re.compile(r"(?P<name>--?[\w-]*compile[\w-]*(?:=|\s+))(?P<value>False|false|no|off|0)(?=\s|$)")
_ON = {"False": "True", "false": "true", "no": "yes", "off": "on", "0": "1"}


class CompileModule(Transform):
    """Without torch.compile TorchTPU launches one program for every operator.

    With it the forward pass of the model is one program and the backward pass another, and what lies between two
    operators need not go through memory. A switch of the program's own is used where it has one; else
    ``model.compile()`` is put behind the making of the optimizer, which leaves the names of parameters as they are.
    """

    ID = "compile-module"
    TITLE = "the model in torch.compile"
    ORDER = 10

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if any(entry.get("region") is not None for entry in subject.step["operators"]):
            return None
        if _OFF.search(subject.command) is not None:
            return Proposal("run the program with its own switch for torch.compile", command=_switched_on)
        for path, module in subject.on_path():
            edits = list(_at_switch(module))
            if edits:
                title = "compile the model wherever the device is neither CPU nor CUDA"
                return Proposal(title, subject.edited(path, edits), note=_NOTE)
        for path, module in subject.on_path():
            edits = _inserted(module)
            if edits:
                return Proposal("compile the model off the CPU and CUDA", subject.edited(path, edits), note=_NOTE)
        return Advice("no training loop was found whose optimizer takes the parameters of one named model")


_NOTE = "On the CPU and on CUDA nothing changes. Every new shape of an input is compiled anew."


def _switched_on(command: str) -> str:
    return _OFF.sub(lambda off: f"{off['name']}{_ON[off['value']]}", command)


def _at_switch(module: Module) -> Iterator[Edit]:
    """The conditions of calls of torch.compile, widened."""
    for call in module.calls("torch.compile"):
        child: ast.AST = call
        for holder in module.ancestors(call):
            if isinstance(holder, ast.IfExp | ast.If):
                inside = holder.body if isinstance(holder.body, list) else [holder.body]
                if child in inside and isinstance(holder.test, ast.Name | ast.Attribute):
                    test, edits = off_cpu_and_cuda(module, holder)
                    place = module.span(holder.test)[1]
                    yield Edit(place, place, f" or {test}")
                    yield from edits
                break
            child = holder


def _inserted(module: Module) -> list[Edit]:
    """``model.compile()`` behind the optimizer that takes the model's parameters, in a file that trains."""
    if not any(True for _ in steps(module)):
        return []
    for statement in module.nodes(ast.Assign):
        model = _optimized(module, statement)
        if model is not None and alone(module, statement):
            test, edits = off_cpu_and_cuda(module, statement)
            call = f"{module.source.indent}{model}.compile()"
            return [add_below(module, statement, f"if {test}:", call), *edits]
    return []


def _optimized(module: Module, statement: ast.Assign) -> str | None:
    """The model's name in ``torch.optim.SGD(model.parameters(), ...)`` or ``model.configure_optimizers(...)``."""
    call = statement.value
    if not isinstance(call, ast.Call):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "configure_optimizers":
        return call.func.value.id if isinstance(call.func.value, ast.Name) else None
    if not (module.qualify(call.func) or "").startswith("torch.optim."):
        return None
    names = {
        node.func.value.id
        for node in ast.walk(call)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("parameters", "named_parameters")
        and isinstance(node.func.value, ast.Name)
    }
    return names.pop() if len(names) == 1 else None
