"""Turns the arguments of recorded operators into JSON and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

_TORCH = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}


def encode(value: Any, tensor: Callable[[torch.Tensor], Any]) -> Any:
    """Returns a value as JSON.

    Args:
        value: An argument of an ATen operator.
        tensor: Encodes a tensor.

    Raises:
        TypeError: The value is of a kind that cannot be recorded.
    """
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if isinstance(value, int) or math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (list, tuple)):
        return [encode(item, tensor) for item in value]
    if isinstance(value, torch.device):
        return {"device": value.type}
    for kind, name in _TORCH.items():
        if isinstance(value, kind):
            return {name: str(value).removeprefix("torch.")}
    if isinstance(value, torch.Generator):
        # Only that numbers are drawn matters here, not which.
        return None
    raise TypeError(f"a {type(value).__name__} as argument of an operator")


def decode(value: Any, tensor: Callable[[int], Any]) -> Any:
    """Returns what ``encode`` was given.

    Args:
        value: The JSON.
        tensor: Returns the tensor of a number.
    """
    if isinstance(value, list):
        return [decode(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensor(content)
    if kind == "float":
        return float(content)
    if kind == "device":
        return torch.device("tpu" if content == "tpu" else content)
    return getattr(torch, content)
