"""Computes the blocks of a model again in the backward pass, where what they keep does not fit the memory."""

from __future__ import annotations

import ast

from tools.code.edits import Edit
from tools.code.module import Module
from tools.code.rewrite import add_below, alone, insert_after_header
from tools.transforms.base import Advice, Proposal, Subject, Transform


class CheckpointBlocks(Transform):
    """``for block in self.blocks: x = block(x)`` keeps the activations of every block until the backward pass.

    With ``torch.utils.checkpoint`` only the inputs of blocks are kept, for about a third more operations. Tried only
    where the step does not fit. A model of Transformers is told by its own method.
    """

    ID = "checkpoint-blocks"
    TITLE = "blocks computed again in the backward pass"
    ORDER = 60

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if subject.fits is not False:
            return None
        title = "keep only the inputs of blocks, and compute the rest again"
        for path, module in subject.on_path():
            edits = _wrapped(module) or _asked(module)
            if edits:
                return Proposal(title, subject.edited(path, edits), note="The backward pass computes the blocks again.")
        return Advice("no loop over blocks of the form `for block in self.blocks: x = block(x)` was found")


def _wrapped(module: Module) -> list[Edit]:
    """Each such loop of a forward method."""
    edits: list[Edit] = []
    for loop in module.nodes(ast.For):
        function = module.function(loop)
        call = _call(loop)
        if call is None or getattr(function, "name", "") != "forward":
            continue
        first, last = module.span(call.func)
        opening = module.source.text.index("(", last)
        edits.append(Edit(first, opening + 1, f"checkpoint({module.text(call.func)}, "))
        end = module.span(call)[1] - 1
        edits.append(Edit(end, end, ", use_reentrant=False"))
    if edits and not module.names.binds("torch.utils.checkpoint.checkpoint"):
        edits.append(insert_after_header(module, _IMPORT, blank=False))
    return edits


_IMPORT = "from torch.utils.checkpoint import checkpoint"


def _call(loop: ast.For) -> ast.Call | None:
    """The call in ``for block in ...: x = block(x)``, positional arguments only."""
    if len(loop.body) != 1 or not isinstance(loop.target, ast.Name) or not isinstance(loop.body[0], ast.Assign):
        return None
    statement = loop.body[0]
    call = statement.value
    target = statement.targets[0]
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != loop.target.id:
        return None
    arguments = [argument for argument in call.args if isinstance(argument, ast.Name)]
    same = isinstance(target, ast.Name) and bool(arguments) and arguments[0].id == target.id
    return call if same and not call.keywords and len(arguments) == len(call.args) else None


def _asked(module: Module) -> list[Edit]:
    """``model.gradient_checkpointing_enable()`` behind the making of a model of Transformers."""
    for statement in module.nodes(ast.Assign):
        value, target = statement.value, statement.targets[0]
        call = value if isinstance(value, ast.Call) else None
        while call is not None and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
            call = call.func.value
        name = module.qualify(call.func) if call is not None else None
        made = (name or "").startswith("transformers.") and "For" in (name or "").rpartition("transformers.")[2]
        if made and isinstance(target, ast.Name) and alone(module, statement):
            return [add_below(module, statement, f"{target.id}.gradient_checkpointing_enable()")]
    return []
