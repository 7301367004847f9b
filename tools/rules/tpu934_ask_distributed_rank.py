"""TPU934: rank and world size asked of torch_xla."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.module import Module
from tools.code.rewrite import parenthesised, spell
from tools.code.torch_xla import INITIALIZED, MODEL, OPTIONAL, RANK, RUNTIME, aside, first_rank_test, needs_torch_xla
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_SIZE = "torch.distributed.get_world_size"
_RANKS = (f"{MODEL}.get_ordinal", f"{RUNTIME}.global_ordinal")
_SIZES = (f"{MODEL}.xrt_world_size", f"{RUNTIME}.world_size")
_LOCAL = (f"{MODEL}.get_local_ordinal", f"{RUNTIME}.local_ordinal")
_FIRST = (f"{MODEL}.is_master_ordinal", f"{RUNTIME}.is_master_ordinal")
_COUNTS = (f"{RUNTIME}.global_runtime_device_count", f"{RUNTIME}.addressable_device_count",
           f"{RUNTIME}.local_device_count", f"{MODEL}.get_xla_supported_devices", f"{RUNTIME}.process_count",
           f"{RUNTIME}.process_index", f"{RUNTIME}.device_type")  # fmt: skip


class AskDistributedRank(PythonRule):
    """``xm.get_ordinal()`` and ``xm.xrt_world_size()`` are gone from torch_xla, and never were in torch_tpu.

    torch.distributed has them; without a process group the answers are those of a single process.

    Fixed where the file cannot be loaded without torch_xla. Not covered: functions that count devices, which are reported.
    """

    ID = "TPU934"
    NAME = "ask-distributed-rank"
    FAMILY = "I"
    MESSAGE = "this is asked of torch_xla; torch.distributed knows it"
    TRIGGERS = (
        "ordinal",
        "world_size",
        "device_count",
        "supported_devices",
        "process_count",
        "process_index",
        "device_type",
    )
    REQUIRES = ("torch_xla",)
    PATTERN = r"ordinal\(|world_size\(|device_count\(|supported_devices\(|process_(count|index)\(|device_type\("
    COVERS = ("I1", "I2")
    VALID = (
        "import torch_xla\nimport torch.distributed as dist\nn = dist.get_world_size()\n",
        "def get_ordinal():\n    return 0\nr = get_ordinal()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nimport torch_xla.core.xla_model as xm\nrank = xm.get_ordinal()\nsize = 4 * xm.xrt_world_size()\n",
            "import torch\nimport torch_xla.core.xla_model as xm\n"
            "rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0\n"
            "size = 4 * (torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1)\n",
            count=2,
        ),
        Invalid(
            "import torch.distributed as dist\nimport torch_xla.core.xla_model as xm\nif xm.is_master_ordinal():\n    save()\n",
            "import torch.distributed as dist\nimport torch_xla.core.xla_model as xm\n"
            "if not dist.is_initialized() or dist.get_rank() == 0:\n    save()\n",
        ),
        Invalid(
            "import torch_xla.runtime as xr\nlocal = xr.local_ordinal()\n",
            'import os\n\nimport torch_xla.runtime as xr\nlocal = int(os.environ.get("LOCAL_RANK", "0"))\n',
        ),
        Invalid("import torch_xla.runtime as xr\nn = xr.global_runtime_device_count()\n", None),
        Invalid(
            "try:\n    import torch_xla.core.xla_model as xm\nexcept ImportError:\n    pass\nr = xm.get_ordinal()\n",
            None,
        ),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields calls for rank, world size and the like."""
        for call in module.calls(*_RANKS, *_SIZES, *_LOCAL, *_FIRST, *_COUNTS):
            if aside(module, call):
                continue
            name = module.qualify(call.func) or ""
            if not needs_torch_xla(module):
                yield Match(*module.span(call), grade=Grade.ADVICE, note=OPTIONAL)
            elif name in _COUNTS:
                note = "torch.distributed.get_world_size() counts processes, torch.accelerator.device_count() devices"
                yield Match(*module.span(call), grade=Grade.ADVICE, note=note)
            else:
                text, written = _answer(module, call, name)
                yield Match(*module.span(call), fix=imported(module, [module.replace(call, text)], written))


def _answer(module: Module, call: ast.Call, name: str) -> tuple[str, str]:
    if name in _LOCAL:
        return f'int({spell(module, "os.environ")}.get("LOCAL_RANK", "0"))', "os.environ"
    if name in _FIRST:
        test = first_rank_test(module)
        parent = module.parent(call)
        bare = isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assign | ast.Return | ast.keyword)
        return (test if bare else f"({test})"), RANK
    asked, alone = (RANK, 0) if name in _RANKS else (_SIZE, 1)
    text = f"{spell(module, asked)}() if {spell(module, INITIALIZED)}() else {alone}"
    return parenthesised(module, call, text), asked
