"""Catches what names CUDA below the functions of torch: operators called directly, and choices of kernels.

New memory asked of CUDA by an operator is the CPU's. Attention may always take the plain kernel, as the ones
a program restricts it to exist on CUDA alone.
"""

from __future__ import annotations

import warnings
from typing import Any

from torchtpu.proof.kernels import Kernels

_kept: list[Any] = []


def install(torch: Any) -> None:
    """Registers the CPU's allocation for CUDA."""
    kernels = Kernels(torch)
    _kept.append(kernels)
    cpu = torch.device("cpu")

    def on_the_cpu(name: str) -> Any:
        operator = kernels.operator(name)

        def kernel(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("pin_memory", None)
            return operator(*args, **{**kwargs, "device": cpu})

        return kernel

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        for name in ("empty.memory_format", "empty_strided"):
            kernels.put(name, on_the_cpu(name), "CUDA")
    set_plain = torch._C._set_sdp_use_math
    torch._C._set_sdp_use_math = lambda _enabled: set_plain(True)
