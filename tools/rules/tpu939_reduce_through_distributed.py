"""TPU939: collectives of torch_xla."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.module import Module
from tools.code.torch_xla import aside, model_calls
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TWINS = {
    "all_reduce": "torch.distributed.all_reduce(tensor, op), in place",
    "all_gather": "torch.distributed.all_gather_into_tensor(output, tensor)",
    "all_to_all": "torch.distributed.all_to_all_single(output, tensor)",
    "reduce_scatter": "torch.distributed.reduce_scatter_tensor(output, tensor)",
    "mesh_reduce": "torch.distributed.all_gather_object(values, value), then the function",
    "broadcast_master_param": "DistributedDataParallel, which broadcasts parameters when it is made",
    "collective_broadcast": "torch.distributed.broadcast(tensor, 0)",
    "collective_permute": "torch.distributed.send and recv",
}


class ReduceThroughDistributed(PythonRule):
    """Collectives of torch_xla (``xm.all_reduce``, ``xm.mesh_reduce`` and others).

    Some work in place, some return the result, and the reduced object may be a list or a host value, so they are reported
    with the function of torch.distributed that does the same.
    """

    ID = "TPU939"
    NAME = "reduce-through-distributed"
    FAMILY = "I"
    GRADE = Grade.ADVICE
    MESSAGE = "this is a collective of torch_xla"
    TRIGGERS = tuple(f"{name}(" for name in sorted(_TWINS))
    REQUIRES = ("torch_xla",)
    COVERS = ("D8",)
    VALID = ("import torch_xla\nimport torch.distributed as dist\ndist.all_reduce(x)\n",)
    INVALID = (
        Invalid(
            "import torch_xla.core.xla_model as xm\nacc = xm.mesh_reduce('acc', acc, max)\nxm.all_reduce(xm.REDUCE_SUM, [x])\n",
            None,
            count=2,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the collectives."""
        for call in model_calls(module, *_TWINS):
            if aside(module, call):
                continue
            name = (module.qualify(call.func) or "").rpartition(".")[2]
            yield Match(*module.span(call), note=f"use {_TWINS[name]}")
