"""Normal draws with a mean or deviation per element, which deadlock torch_tpu in DeferAndFuse.

The deadlock is in torch_tpu's kernel for `torch.normal` with tensors, not in the CPU plugin; the
in-place `normal_`, and with it every other draw torch_tpu has, runs in every mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics
    from torchtpu.simulator.kernels import Registry

_OVERLOADS = ("Tensor_Tensor", "Tensor_float", "float_Tensor")


def _normal(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Any:
    given = mean if isinstance(mean, torch.Tensor) else std
    shape = torch.broadcast_shapes(*(p.shape for p in (mean, std) if isinstance(p, torch.Tensor)))  # type: ignore[no-untyped-call]
    draws = torch.empty(shape, dtype=given.dtype, device=given.device).normal_(generator=generator)
    return (draws * std + mean).to(given.dtype)


def _normal_out(mean: Any, std: Any = 1.0, *, generator: Any = None, out: Any) -> Any:
    draws = _normal(mean, std, generator=generator)
    return out.resize_(draws.shape).copy_(draws)


def install(registry: Registry, _numerics: Numerics) -> None:
    """Draws standard normal numbers, then scales and shifts them."""
    for overload in _OVERLOADS:
        for name, kernel in ((f"aten::normal.{overload}", _normal), (f"aten::normal.{overload}_out", _normal_out)):
            if registry.exists(name):
                registry.replace(name, kernel)
