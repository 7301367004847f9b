"""TPU941: sharding through torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.module import Module
from tools.code.torch_xla import aside
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SHARDED = "torch.distributed.fsdp.fully_shard(model, mesh=...), which returns plain outputs"
_MESH = (
    "torch.distributed.device_mesh.init_device_mesh and torch.distributed.tensor.distribute_tensor, or the parallel "
    "styles of torch.distributed.tensor.parallel"
)
_HOMES = {
    "torch_xla.distributed.fsdp": _SHARDED,
    "torch_xla.experimental.spmd_fully_sharded_data_parallel": _SHARDED,
    "torch_xla.distributed.spmd": _MESH,
    "torch_xla.experimental.xla_sharding": _MESH,
    "torch_xla.experimental.xla_sharded_tensor": _MESH,
    "torch_xla.runtime.use_spmd": "nothing; a mesh is given where tensors are sharded",
}


class ReviewXlaSharding(PythonRule):
    """Sharding marks and sharded wrappers of torch_xla (``xs.mark_sharding``, ``xr.use_spmd``, ``FSDPv2``).

    torch_tpu shards with PyTorch's own DTensor and ``fully_shard``. Which dimension belongs to which axis of the mesh is
    in the program's own words, so the first use of each package is reported with its counterpart.
    """

    ID = "TPU941"
    NAME = "review-xla-sharding"
    FAMILY = "I"
    GRADE = Grade.ADVICE
    MESSAGE = "this shards through torch_xla"
    TRIGGERS = ("fsdp", "spmd", "xla_shard")
    REQUIRES = ("torch_xla",)
    COVERS = ("D19",)
    VALID = ("import torch_xla\nfrom torch.distributed.fsdp import fully_shard\n",)
    INVALID = (
        Invalid(
            "import torch_xla.runtime as xr\nimport torch_xla.distributed.spmd as xs\n"
            "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP\nxr.use_spmd()\n",
            None,
            count=3,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields imports of the packages, and the switch."""
        statements: list[ast.Import | ast.ImportFrom] = [*module.nodes(ast.Import), *module.nodes(ast.ImportFrom)]
        for statement in statements:
            home = _home(statement)
            if home is not None and not aside(module, statement):
                yield Match(*module.span(statement), note=f"use {_HOMES[home]}")
        for call in module.calls("torch_xla.runtime.use_spmd"):
            yield Match(*module.span(call), note=f"use {_HOMES['torch_xla.runtime.use_spmd']}")


def _home(statement: ast.Import | ast.ImportFrom) -> str | None:
    names = [alias.name for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        names = [statement.module or "", *(f"{statement.module}.{name}" for name in names)]
    return next((home for home in _HOMES for name in names if name == home or name.startswith(f"{home}.")), None)
