"""Lets TorchTPU keep operators between compiled programs back until a value is needed, and run them together."""

from __future__ import annotations

from tools.code.calls import device_type_operand
from tools.code.edits import Edit
from tools.code.rewrite import header, insert_after, resolved_variables
from tools.code.training_loops import steps
from tools.transforms.base import Advice, Proposal, Subject, Transform


class DeferRest(Transform):
    """Clipping, the optimizer and what else is not in torch.compile is launched operator by operator by default.

    In the mode ``DEFER_AND_FUSE`` TorchTPU collects such operators. The mode is public and experimental
    (``torch.tpu.eager_mode``). Proposed only where something is compiled: by itself the mode joins no more than parts
    of a step, which our estimate cannot follow.
    """

    ID = "defer-rest"
    TITLE = "what is not compiled in the deferred mode"
    ORDER = 20

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if subject.step.get("deferred"):
            return None
        if not any(entry.get("region") is not None for entry in subject.step["operators"]):
            return Advice("without torch.compile the mode joins parts of a step only, and which is not modelled")
        for path, module in subject.on_path():
            if any(True for _ in steps(module)) and module.names.spelling("torch") == "torch":
                name, edits = device_type_operand(module, module.tree.body[-1])
                newline = module.source.newline
                text = (
                    f'if {name} == "tpu":{newline}{module.source.indent}'
                    "torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE"
                )
                known = resolved_variables(module).get(name.removesuffix(".type"))
                switch = insert_after(module, [known] if known else header(module), text, blank=True)
                return Proposal(
                    "run operators outside of compiled programs together",
                    subject.edited(path, _joined(edits, switch)),
                    note="torch.tpu.eager_mode is experimental: a release of TorchTPU may change or drop it.",
                )
        return Advice("no file with a training loop was found that imports torch by its own name")


def _joined(edits: list[Edit], last: Edit) -> list[Edit]:
    """One insertion where several stand at one place, the constant in front of what uses it."""
    here = [edit for edit in edits if edit.start == last.start]
    others = [edit for edit in edits if edit.start != last.start]
    return [*others, Edit(last.start, last.end, "".join(edit.replacement for edit in here) + last.replacement)]
