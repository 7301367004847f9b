"""A TPU's default matrix numerics on the CPU: float32 operands are rounded to bfloat16, sums stay float32.

The same operators, operands and gradients as on a simulated device with TPU numerics
(`torchtpu.simulator.substitutes.matrix_numerics`). A program that asks for high or highest float32 matrix
precision keeps float32.

Products of half-precision operands are computed in float32 and rounded once, as a TPU does; PyTorch's own
kernels for them are also 30 times slower on a CPU without instructions for half precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.kernels import Kernels
from torchtpu.simulator.rounding import rounded, rounded_backward

# Positions of the matrix operands among the positional arguments; every overload the CPU has is meant.
_OPERANDS = {
    "mm": (0, 1),
    "mm.out": (0, 1),
    "bmm": (0, 1),
    "bmm.out": (0, 1),
    "addmm": (1, 2),
    "addmm_": (1, 2),
    "addmm.out": (1, 2),
    "baddbmm": (1, 2),
    "baddbmm_": (1, 2),
    "baddbmm.out": (1, 2),
    "addbmm": (1, 2),
    "addbmm_": (1, 2),
    "addbmm.out": (1, 2),
    "addmv": (1, 2),
    "addmv_": (1, 2),
    "addmv.out": (1, 2),
    "_addmm_activation": (1, 2),
    "_addmm_activation.out": (1, 2),
    "dot": (0, 1),
    "vdot": (0, 1),
    "convolution": (0, 1),
    "_grouped_mm": (0, 1),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (0, 1, 2, 3),
}
# Operands to round, and the position of the output mask: see `rounded_backward`.
_BACKWARD = {"convolution_backward": ((0, 1, 2), 10)}

_kept: list[Any] = []


class _Rounding:
    def __init__(self, torch: Any) -> None:
        self.torch = torch
        # The method of C: torch's own may be one that keeps float32.
        self.to = torch._C.TensorBase.to
        self.asked_for_more = False

    def half(self, args: tuple[Any, ...], operands: tuple[int, ...]) -> Any:
        """Returns the dtype of operands in half precision, else None."""
        first = args[operands[0]]
        dtype = first.dtype if isinstance(first, self.torch.Tensor) else None
        return dtype if dtype in (self.torch.float16, self.torch.bfloat16) else None

    def widened(self, original: Callable[..., Any], dtype: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Computes in float32 and rounds what comes out to the dtype of the operands."""
        tensor, full = self.torch.Tensor, self.torch.float32
        given = [self.to(a, full) if isinstance(a, tensor) and a.dtype == dtype else a for a in args]
        made = original(*given, **kwargs)
        if not isinstance(made, tuple):
            return self.to(made, dtype)
        # A second value beside one output is the logarithm of a sum, which is kept in float32.
        narrow = 1 if len(made) == 2 else len(made)
        return tuple(self.to(m, dtype) if i < narrow and isinstance(m, tensor) else m for i, m in enumerate(made))

    def forward(self, original: Callable[..., Any], operands: tuple[int, ...], widen: bool) -> Callable[..., Any]:
        """An operator with rounded operands."""

        def kernel(*args: Any, **kwargs: Any) -> Any:
            dtype = self.half(args, operands) if widen else None
            if dtype is not None:
                return self.widened(original, dtype, args, kwargs)
            if self.asked_for_more:
                return original(*args, **kwargs)
            return original(*(rounded(a) if i in operands else a for i, a in enumerate(args)), **kwargs)

        return kernel

    def backward(self, original: Callable[..., Any], operands: tuple[int, ...], mask: int) -> Callable[..., Any]:
        """A gradient with rounded operands, that of the bias excepted."""

        def kernel(*args: Any) -> Any:
            dtype = self.half(args, operands)
            if dtype is not None:
                return self.widened(original, dtype, args, {})
            return original(*args) if self.asked_for_more else rounded_backward(original, args, operands, mask)

        return kernel

    def watch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """``set_float32_matmul_precision``."""

        def set_precision(precision: str) -> None:
            original(precision)
            self.asked_for_more = precision != "medium"

        return set_precision


def _returns(name: str) -> bool:
    """Tells whether an operator returns new tensors rather than writing into given ones."""
    return "." not in name and (name.startswith("_") or not name.endswith("_"))


def install(torch: Any) -> None:
    """Rounds the operands of every matrix product on the CPU from here on."""
    kernels, rounding = Kernels(torch), _Rounding(torch)
    _kept.append(kernels)
    wrapping.over(torch, "set_float32_matmul_precision", rounding.watch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Warning only once for all operators")
        for name, operands in _OPERANDS.items():
            if kernels.reaches(name, "CPU"):
                kernels.put(name, rounding.forward(kernels.original(name, "CPU"), operands, _returns(name)), "CPU")
        for name, (positions, mask) in _BACKWARD.items():
            kernels.put(name, rounding.backward(kernels.original(name, "CPU"), positions, mask), "CPU")
