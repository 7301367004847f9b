"""TPU404: sharded state dicts of FSDP."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_NAMES = (
    "torch.distributed.fsdp.StateDictType.SHARDED_STATE_DICT",
    "torch.distributed.fsdp.StateDictType.LOCAL_STATE_DICT",
    "torch.distributed.fsdp.fully_sharded_data_parallel.StateDictType.SHARDED_STATE_DICT",
    "torch.distributed.fsdp.fully_sharded_data_parallel.StateDictType.LOCAL_STATE_DICT",
)


class ReviewShardedState(PythonRule):
    """``StateDictType.SHARDED_STATE_DICT`` of the first FSDP.

    Resuming from such a checkpoint asks CUDA for its current device on ranks that hold no shard, inside PyTorch. A full
    state dict, or ``torch.distributed.checkpoint`` with DTensor states (``fully_shard``), does not.

    Comparisons with a kind ask for nothing and have no finding. Reported only: what is on disk decides how it can be read.
    """

    ID = "TPU404"
    NAME = "review-sharded-state"
    FAMILY = "D"
    GRADE = Grade.ADVICE
    MESSAGE = "a sharded state dict asks for CUDA when it is resumed on a rank without a shard"
    TESTS = False
    TRIGGERS = ("SHARDED_STATE_DICT", "LOCAL_STATE_DICT")
    COVERS = ("D17", "D18")
    VALID = (
        "from torch.distributed.fsdp import StateDictType\nkind = StateDictType.FULL_STATE_DICT\n",
        "SHARDED_STATE_DICT = 1\n",
        "from torch.distributed.fsdp import StateDictType\nif kind == StateDictType.LOCAL_STATE_DICT:\n    raise ValueError(kind)\n",
    )
    INVALID = (
        Invalid(
            "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType\n"
            "with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):\n    save()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields uses of the sharded kinds."""
        note = "use FULL_STATE_DICT, or fully_shard with torch.distributed.checkpoint"
        for node in module.references(*_NAMES):
            if isinstance(module.parent(node), ast.Compare):
                continue
            if isinstance(node, ast.Attribute) and not on_cuda_path(module, node):
                yield Match(*module.span(node), note=note)
