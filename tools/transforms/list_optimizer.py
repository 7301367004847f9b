"""Lets the optimizer take lists of tensors, which the compiler fuses, in the place of its fused operator."""

from __future__ import annotations

import ast

from tools.code.calls import on_cpu_or_cuda
from tools.code.module import keyword
from tools.transforms.base import Proposal, Subject, Transform


class ListOptimizer(Transform):
    """TorchTPU makes several passes over each parameter of its fused operator.

    Where what is not compiled runs together, the same update by operators on lists becomes fewer passes. Neither
    is better by itself, so both are tried. Without either, PyTorch takes lists on a TPU.
    """

    ID = "list-optimizer"
    TITLE = "lists of tensors in the optimizer"
    ORDER = 25

    def propose(self, subject: Subject) -> Proposal | None:
        """See `Transform`."""
        if not any("_fused_" in entry["op"] for entry in subject.step["operators"]):
            return None
        for path, module in subject.on_path():
            for call in module.nodes(ast.Call):
                found = keyword(call, "fused")
                named = (module.qualify(call.func) or "").startswith("torch.optim.")
                if named and found and isinstance(found.value, ast.Constant) and found.value.value is True:
                    test, edits = on_cpu_or_cuda(module, call)
                    edit = module.replace(found.value, f"True if {test} else None")
                    title = "update parameters by lists off the CPU and CUDA"
                    return Proposal(title, subject.edited(path, [edit, *edits]))
        return None
