"""TPU414: objects sent through the accelerator's process group."""

from __future__ import annotations

from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module, keyword
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_OBJECTS = tuple(
    f"torch.distributed.{name}"
    for name in (
        "all_gather_object",
        "gather_object",
        "broadcast_object_list",
        "scatter_object_list",
        "send_object_list",
        "recv_object_list",
        "monitored_barrier",
    )
)


class ReviewObjectCollective(PythonRule):
    """``dist.all_gather_object`` and its kin pickle objects into tensors that the process group has to carry.

    NCCL carries them on CUDA. A group for a TPU alone may refuse CPU tensors; a group with a backend for each device
    (``cpu:gloo,tpu:tpu_dist``), or a second gloo group for objects, carries both.

    Reported where no group is given.
    """

    ID = "TPU414"
    NAME = "review-object-collective"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "objects travel as CPU tensors, which a process group for a TPU alone does not carry"
    TRIGGERS = ("_object(", "_object_list(", "monitored_barrier(")
    REQUIRES = ("distributed",)
    COVERS = ("D6",)
    VALID = (
        "import torch.distributed as dist\ndist.all_gather_object(found, value, group=cpu_group)\n",
        "import pickle\nclient.gather_object(x)\n",
    )
    INVALID = (
        Invalid("import torch.distributed as dist\ndist.all_gather_object(found, value)\n", None),
        Invalid("import torch\ntorch.distributed.broadcast_object_list([name], src=0)\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields object collectives through the default group."""
        note = 'give group=torch.distributed.new_group(backend="gloo"), made once on every rank'
        for call in module.calls(*_OBJECTS):
            if keyword(call, "group") is None and not on_cuda_path(module, call):
                yield Match(*module.span(call), note=note)
