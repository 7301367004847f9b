"""Refuses Pallas kernels with a clear error: they are compiled for a TPU's cores only."""

from __future__ import annotations

import functools
from typing import Any

from torchtpu.simulator.limits import SimulatorLimit

_MOSAIC = "tpu_custom_call"


def install() -> None:
    """Checks every kernel before torch_tpu registers it; those without Mosaic code may run."""
    try:
        from torch_tpu._internal.pallas import tpu_torch_pallas
    except ImportError:  # Pallas needs jax, which a workload's interpreter may lack
        return
    register = tpu_torch_pallas.register_custom_kernel

    @functools.wraps(register)
    def checked(name: str, *args: Any, **kwargs: Any) -> Any:
        code = kwargs.get("serialized_mlir_module", b"")
        if _MOSAIC.encode() in bytes(code):
            raise SimulatorLimit(f"the Pallas kernel {name!r}", "give the kernel a plain PyTorch alternative")
        return register(name, *args, **kwargs)

    tpu_torch_pallas.register_custom_kernel = checked
