"""TPU216: names of ``torch.tpu`` that raise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tools.code.cuda_calls import imported
from tools.code.module import Module
from tools.code.rewrite import spell
from tools.findings import Grade
from tools.rules.base import Invalid, Match, PythonRule

_TWINS = {
    "is_available": "is_available",
    "device_count": "device_count",
    "current_device": "current_device_index",
    "set_device": "set_device_index",
    "device": "device_index",
    "synchronize": "synchronize",
    "current_stream": "current_stream",
    "set_stream": "set_stream",
}
_ABSENT = {
    "empty_cache": "empty_cache",
    "memory_allocated": "memory_allocated",
    "max_memory_allocated": "max_memory_allocated",
    "memory_reserved": "memory_reserved",
    "max_memory_reserved": "max_memory_reserved",
    "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "mem_get_info": "get_memory_info",
}
_NOTES = {
    "get_rng_state": "PyTorch keeps it to itself; seed with torch.manual_seed",
    "initial_seed": "use torch.initial_seed()",
    "get_device_capability": "a TPU has no compute capability",
    "is_bf16_supported": "a TPU always computes in bfloat16",
    "get_rng_state_all": "does not exist",
    "set_rng_state_all": "does not exist",
    "nvtx": "use torch.profiler.record_function",
    "amp": "use torch.amp with the device type",
    "CUDAGraph": "does not exist; use torch.compile",
    "OutOfMemoryError": "use torch.OutOfMemoryError",
    "reset_accumulated_memory_stats": "is not implemented for TPU",
}


class NameAcceleratorTwin(PythonRule):
    """``torch.tpu.synchronize()`` and its like raise in user code, or do not exist: a renamed ``torch.cuda`` is a trap.

    TorchTPU keeps these names to PyTorch itself and names ``torch.accelerator`` instead, which also works on CUDA.

    Not covered: names reached through ``torch.get_device_module``.
    """

    ID = "TPU216"
    NAME = "name-accelerator-twin"
    FAMILY = "B"
    MESSAGE = "torch.tpu raises for this name; torch.accelerator has it for every device"
    WHOLE_WORDS = True
    TRIGGERS = ("torch.tpu", "import tpu", "tpu.")
    COVERS = ("B12",)
    VALID = (
        "import torch\ntorch.accelerator.synchronize()\n",
        "import torch\nname = torch.tpu.get_device_name()\n",
    )
    INVALID = (
        Invalid(
            "import torch\nif torch.tpu.is_available():\n    torch.tpu.synchronize()\n",
            "import torch\nif torch.accelerator.is_available():\n    torch.accelerator.synchronize()\n",
            count=2,
        ),
        Invalid(
            "import torch\nx = torch.tpu.memory_allocated()\n",
            "import torch\nx = torch.accelerator.memory_allocated()\n",
        ),
        Invalid("import torch\nok = torch.tpu.is_bf16_supported()\n", None),
    )

    def check(self, module: Module) -> Iterator[Match]:
        """Yields uses of the forbidden names."""
        for node in module.nodes(ast.Attribute, ast.Name):
            dotted = module.qualify(node)
            if dotted is None or not dotted.startswith("torch.tpu."):
                continue
            name = dotted[len("torch.tpu.") :]
            twin = _TWINS.get(name) or _ABSENT.get(name)
            if twin:
                full = f"torch.accelerator.{twin}"
                yield Match(*module.span(node), fix=imported(module, [module.replace(node, spell(module, full))], full))
            elif name in _NOTES:
                yield Match(*module.span(node), grade=Grade.ADVICE, note=_NOTES[name])
