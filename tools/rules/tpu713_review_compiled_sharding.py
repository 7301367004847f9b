"""TPU713: compilation and sharding together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.guards import on_cuda_path
from tools.code.module import Module
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SHARDED = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.fsdp.fully_shard",
)


class ReviewCompiledSharding(PythonRule):
    """A function, or a script, that both compiles and shards a model.

    Each works alone. Together, on a TPU, collectives end up inside the compiled program, which torch_tpu 0.2.0 cuts there
    or cannot build. Sharding first and compiling the blocks afterwards is the order that PyTorch documents.

    Reported at the wrapper of the first FSDP or at ``fully_shard``.
    """

    ID = "TPU713"
    NAME = "review-compiled-sharding"
    FAMILY = "Q"
    GRADE = Grade.ADVICE
    MESSAGE = "this compiles and shards; on a TPU try each alone first"
    TESTS = False
    TRIGGERS = ("FSDP(", "FullyShardedDataParallel(", "fully_shard(")
    REQUIRES = ("torch.compile", "fsdp")
    COVERS = ("Q4",)
    VALID = (
        "import torch\nfrom torch.distributed.fsdp import fully_shard\ndef f(m):\n    fully_shard(m)\n\ndef g(m):\n    return torch.compile(m)\n",
        "import torch\nfrom torch.distributed.fsdp import fully_shard\nfully_shard(model)\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = torch.compile(model)\n"
            "model = FSDP(model)\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields the first sharding call."""
        note = "shard first, then compile the blocks; keep shapes fixed"
        for call in module.calls(*_SHARDED):
            if not on_cuda_path(module, call) and _compiles(module, call):
                yield Match(*module.span(call), note=note)
                return


def _compiles(module: Module, call: ast.Call) -> bool:
    """Whether the function around a call, or the script outside functions, compiles too."""
    function = module.function(call)
    compiled = (module.function(use) for use in module.references("torch.compile"))
    return any(around in (function, None) for around in compiled)
