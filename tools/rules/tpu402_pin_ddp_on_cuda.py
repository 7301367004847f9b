"""TPU402: device indices given to DistributedDataParallel or to a barrier."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.calls import argument, only_if, spread
from tools.code.device_tests import conjuncts
from tools.code.edits import Fix
from tools.code.guards import assigned, is_cuda_test, on_cuda_path
from tools.code.module import Module
from tools.code.rewrite import cuda_test, import_edits
from tools.rules.base import Invalid, Match, PythonRule

_DDP = frozenset({
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.nn.DistributedDataParallel",
})  # fmt: skip
_BARRIER = frozenset({"torch.distributed.barrier", "torch.distributed.distributed_c10d.barrier"})


class PinDdpOnCuda(PythonRule):
    """``DistributedDataParallel(model, device_ids=[rank])`` and ``barrier(device_ids=[rank])`` name CUDA devices.

    Off CUDA they raise, and a TPU process has one device only, so there ``None`` is given: DDP then uses the device the
    model is on. CUDA keeps its indices. Under a test for NCCL, CUDA is certain.

    Not covered: wrappers of other libraries, and keyword arguments collected in a dictionary before the call.
    """

    ID = "TPU402"
    NAME = "pin-ddp-on-cuda"
    FAMILY = "D"
    MESSAGE = "device_ids and output_device are for CUDA; elsewhere they raise or mean nothing"
    WHOLE_WORDS = True
    TRIGGERS = ("DistributedDataParallel", "DDP", "device_ids")
    COVERS = ("D1", "D2")
    VALID = (
        "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model)\n",
        "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(model, "
        "device_ids=[rank] if torch.cuda.is_available() else None)\n",
        "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model, device_ids=None)\n",
        "from apex.parallel import DistributedDataParallel as DDP\nmodel = DDP(model, device_ids=[0])\n",
        "import torch.distributed as dist\nif dist.get_backend() == dist.Backend.NCCL:\n    dist.barrier(device_ids=[0])\n",
        "import torch.distributed as dist\nuse_ids = ready and dist.get_backend() == 'nccl'\n"
        "dist.barrier(device_ids=[0]) if use_ids else dist.barrier()\n",
        "import torch\nif device.type == 'cuda':\n    m = torch.nn.parallel.DistributedDataParallel(m, device_ids=[gpu])\n",
    )
    INVALID = (
        Invalid(
            "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
            "model = DDP(model, device_ids=[rank], output_device=rank, find_unused_parameters=True)\n",
            "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
            "model = DDP(model, device_ids=[rank] if torch.cuda.is_available() else None, "
            "output_device=rank if torch.cuda.is_available() else None, find_unused_parameters=True)\n",
        ),
        Invalid(
            "import torch.nn as nn\nmodel = nn.parallel.DistributedDataParallel(\n    model,\n    [gpu],\n)\n",
            "import torch\nimport torch.nn as nn\nmodel = nn.parallel.DistributedDataParallel(\n    model,\n"
            "    [gpu] if torch.cuda.is_available() else None,\n)\n",
        ),
        Invalid(
            "import torch.distributed as dist\nimport torch\ndist.barrier(device_ids=[rank])\n",
            "import torch.distributed as dist\nimport torch\n"
            "dist.barrier(device_ids=[rank] if torch.cuda.is_available() else None)\n",
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls with device indices off the CUDA-only path."""
        for call in module.calls(*_DDP, *_BARRIER):
            if spread(call) or on_cuda_path(module, call) or _under_nccl(module, call):
                continue
            first = 1 if module.qualify(call.func) in _DDP else 2
            values = [argument(call, "device_ids", first), argument(call, "output_device", first + 1)]
            wanted = [v for v in values if v is not None and not _settled(module, v)]
            if wanted:
                edits = [only_if(module, call, v, cuda_test(module), "None") for v in wanted]
                yield Match(*module.span(call), fix=Fix((*edits, *import_edits(module))))


_NCCL = re.compile(r"(?i)\bnccl\b")


def _under_nccl(module: Module, call: ast.Call) -> bool:
    """Whether a test around the call asks for NCCL, which only CUDA has, or for a flag that holds the answer."""
    child: ast.AST = call
    for parent in module.ancestors(call):
        if isinstance(parent, ast.If | ast.IfExp):
            under = child in parent.body if isinstance(parent, ast.If) else child is parent.body
            if under and any(_asks_nccl(module, part) for part in conjuncts(parent.test)):
                return True
        child = parent
    return False


def _asks_nccl(module: Module, test: ast.expr) -> bool:
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq) and _NCCL.search(module.text(test)) is not None
    held = assigned(module, test)
    return bool(held) and all(
        any(isinstance(p, ast.Compare) and _asks_nccl(module, p) for p in conjuncts(v)) for v in held
    )


def _settled(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return is_cuda_test(module, value.test)
    return isinstance(value, ast.Constant) and value.value is None
