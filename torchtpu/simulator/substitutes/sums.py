"""Sums and products of many bfloat16 numbers, which a TPU adds up in float32 and XLA:CPU does not.

torch_tpu lowers them to `stablehlo.reduce` and `stablehlo.reduce_window` of bfloat16. A TPU's compiler unpacks
the elements to float32, adds those, and packs the result once: so say the instructions it makes for v4, v5e, v5p,
v6e and tpu7x (evals/results/reductions.md). XLA:CPU rounds to bfloat16 after every addition, and is 4 to 8 times
less exact.
Not covered: scatter with addition (gradients of embeddings and of interpolation), float16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics
    from torchtpu.simulator.kernels import Kernel, Registry

# The methods of C: a run kept in float32 has others in their place.
_base: Any = torch._C.TensorBase

# Operators that write one result to `out`, all of whose tensors are read.
_OUT = (
    "aten::sum.IntList_out",
    "aten::prod.int_out",
    "aten::avg_pool2d.out",
    "aten::avg_pool3d.out",
    "aten::adaptive_avg_pool2d.out",
    "aten::adaptive_avg_pool3d.out",
    "aten::avg_pool2d_backward.grad_input",
    "aten::avg_pool3d_backward.grad_input",
)
# Operators that return one.
_RETURNING = (
    "aten::prod",
    "aten::_adaptive_avg_pool2d",
    "aten::_adaptive_avg_pool3d",
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward",
)


def _wide(values: tuple[Any, ...]) -> list[Any]:
    return [
        _base.float(_base.bfloat16(value)) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for value in values
    ]


def _to_out(original: Kernel, argument: str) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop(argument)
        if out.dtype is not torch.bfloat16:
            return original(*args, **{**kwargs, argument: out})
        if kwargs.get("dtype") is not None:
            kwargs["dtype"] = torch.float32
        made = original(*_wide(args), **{**kwargs, argument: torch.empty_like(out, dtype=torch.float32)})
        return out.resize_(made.shape).copy_(made)

    return kernel


def _returning(original: Kernel) -> Kernel:
    def kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (kwargs.get("dtype") or self.dtype) is not torch.bfloat16:
            return original(self, *args, **kwargs)
        if kwargs.get("dtype") is not None:
            kwargs["dtype"] = torch.float32
        return _base.bfloat16(original(*_wide((self, *args)), **kwargs))

    return kernel


def _with_bias_apart(original: Kernel, grad: int, mask: int, axes: Callable[[Any], list[int]]) -> Kernel:
    """A backward pass whose last gradient, that of the bias, is a sum of the output's gradient over `axes`."""

    def kernel(*args: Any) -> Any:
        *products, bias = args[mask]
        if not bias or args[grad].dtype is not torch.bfloat16:
            return original(*args)
        replaced = list(args)
        replaced[mask] = [*products, False]
        grads = original(*replaced) if any(products) else (None, None)
        return (*grads[:2], torch.ops.aten.sum.dim_IntList(args[grad], axes(args[grad])))

    return kernel


def _all_but_last(grad: Any) -> list[int]:
    return list(range(grad.dim() - 1))


def _all_but_second(grad: Any) -> list[int]:
    return [axis for axis in range(grad.dim()) if axis != 1]


def install(registry: Registry, _numerics: Numerics) -> None:
    """Computes them in float32 and rounds once."""
    for name in _OUT:
        if registry.exists(name):
            argument = "grad_input" if name.endswith("grad_input") else "out"
            registry.replace(name, _to_out(registry.original(name), argument))
    for name in _RETURNING:
        if registry.exists(name):
            registry.replace(name, _returning(registry.original(name)))
    for name, grad, mask, axes in (
        ("aten::linear_backward", 1, 3, _all_but_last),
        ("aten::convolution_backward", 0, 10, _all_but_second),
    ):
        if registry.exists(name):
            registry.replace(name, _with_bias_apart(registry.original(name), grad, mask, axes))
