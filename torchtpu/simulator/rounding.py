"""Rounds float32 matrix operands to bfloat16 as a TPU's matrix unit does by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def full_precision() -> bool:
    """Tells whether the program asked for HIGH or HIGHEST precision, which keeps float32."""
    from torch_tpu._internal.precision import precision_impl

    return bool(precision_impl._get_precision() != precision_impl.Precision.DEFAULT)


def rounded(operand: Any) -> Any:
    """Returns a float32 tensor with its values rounded to bfloat16; anything else as it is."""
    if isinstance(operand, torch.Tensor) and operand.dtype == torch.float32:
        # The methods of C: a run kept in float32 has others in their place.
        base: Any = torch._C.TensorBase
        return base.float(base.bfloat16(operand))
    return operand


def rounded_backward(original: Callable[..., Any], args: tuple[Any, ...], operands: tuple[int, ...], mask: int) -> Any:
    """Computes gradients of a matrix product from rounded operands, that of the bias excepted: it is a plain sum.

    Args:
        original: The kernel; it returns the gradients of input, weight and bias.
        args: Its arguments.
        operands: Positions of those to round.
        mask: Position of the output mask, whose last entry is the bias.
    """
    replaced = [rounded(arg) if i in operands else arg for i, arg in enumerate(args)]
    *products, bias = args[mask]
    replaced[mask] = [*products, False]
    grads = original(*replaced) if any(products) else (None, None, None)
    if not bias:
        return grads
    plain = list(args)
    plain[mask] = [False, False, True]
    return (*grads[:2], original(*plain)[2])
