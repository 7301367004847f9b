"""Refuses Pallas kernels and other JAX operators with a clear error: they run on a TPU only."""

from __future__ import annotations

import functools
from typing import Any

from torchtpu.simulator.limits import SimulatorLimit

_MOSAIC = b"tpu_custom_call"


def install() -> None:
    """Refuses every kernel when torch_tpu registers it, which is at its first call.

    One with Mosaic code needs a TPU's cores. One without is run with a number of chips that a CPU
    plugin cannot tell.
    """
    try:
        from torch_tpu._internal.pallas import tpu_torch_pallas
    except ImportError:  # Pallas needs jax, which a workload's interpreter may lack
        return

    @functools.wraps(tpu_torch_pallas.register_custom_kernel)
    def refused(name: str, *_args: Any, **kwargs: Any) -> Any:
        kind = "Pallas kernel" if _MOSAIC in bytes(kwargs.get("serialized_mlir_module", b"")) else "JAX operator"
        raise SimulatorLimit(f"the {kind} {name!r}", "give it a plain PyTorch alternative")

    tpu_torch_pallas.register_custom_kernel = refused
