"""Matrix products with a TPU's default numerics, installed only when asked for.

A TPU multiplies float32 matrices in one bfloat16 pass unless the program asks for more
(`torch.tpu.precision`, `torch.set_float32_matmul_precision`); XLA:CPU always multiplies in
float32. Operands are rounded here, sums stay float32, and bias and accumulator operands are not
rounded. Not covered: products inside one lowered operator (attention probabilities, the recurrent
state inside LSTM and GRU kernels, bilinear resampling, linear algebra) and complex matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtpu.simulator.rounding import full_precision, rounded, rounded_backward

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics
    from torchtpu.simulator.kernels import Kernel, Registry

# Positions of the matrix operands among the positional arguments.
_OPERANDS = {
    "aten::mm.out": (0, 1),
    "aten::bmm.out": (0, 1),
    "aten::addmm.out": (1, 2),
    "aten::baddbmm.out": (1, 2),
    "aten::addmv.out": (1, 2),
    "aten::_addmm_activation.out": (1, 2),
    "aten::dot": (0, 1),
    "aten::vdot": (0, 1),
    "aten::linear": (0, 1),
    "aten::linear.out": (0, 1),
    "aten::convolution": (0, 1),
    "aten::convolution.out": (0, 1),
    "aten::_scaled_dot_product_fused_attention_overrideable": (0, 1, 2),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": (0, 1, 2, 3),
    "aten::lstm.input": (0,),
    "aten::gru.input": (0,),
}

# Operands to round, and the position of the output mask: see `rounded_backward`.
_BACKWARD = {"aten::linear_backward": ((0, 1, 2), 3), "aten::convolution_backward": ((0, 1, 2), 10)}


def _with_rounded(original: Kernel, operands: tuple[int, ...]) -> Kernel:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        if full_precision():
            return original(*args, **kwargs)
        replaced = [rounded(arg) if i in operands else arg for i, arg in enumerate(args)]
        return original(*replaced, **kwargs)

    return kernel


def _backward_with_rounded(original: Kernel, operands: tuple[int, ...], mask: int) -> Kernel:
    def kernel(*args: Any) -> Any:
        return original(*args) if full_precision() else rounded_backward(original, args, operands, mask)

    return kernel


def install(registry: Registry, numerics: Numerics) -> None:
    """Rounds matrix operands when the numerics are a TPU's."""
    if numerics != "tpu":
        return
    for name, operands in _OPERANDS.items():
        if registry.exists(name):
            registry.replace(name, _with_rounded(registry.original(name), operands))
    for name, (operands, mask) in _BACKWARD.items():
        if registry.exists(name):
            kernel = _backward_with_rounded(registry.original(name), operands, mask)
            registry.replace(name, kernel)
