"""Counts the operations of recorded operators: what the model asks for, whatever the compiler makes of it.

A multiply-add counts as two. Attention counts the whole square of scores, masked or not.
"""

from __future__ import annotations

import math
from typing import Any


class Shapes:
    """Shape of every tensor of a recorded step, by its number."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.of: dict[int, list[int]] = {entry["tensor"]: entry["shape"] for entry in step["inputs"]}
        self.dtypes: dict[int, str] = {entry["tensor"]: entry["dtype"] for entry in step["inputs"]}
        for entry in step["operators"]:
            numbers = [number for number in entry["results"] if number is not None]
            for number, shape in zip(numbers, entry["shapes"], strict=True):
                self.of[number], self.dtypes[number] = shape["shape"], shape["dtype"]

    def argument(self, entry: dict[str, Any], position: int) -> list[int] | None:
        """Returns the shape of an argument; None where it is no tensor."""
        value = entry["args"][position] if position < len(entry["args"]) else None
        return self.of[value["tensor"]] if isinstance(value, dict) and "tensor" in value else None

    def dtype(self, entry: dict[str, Any], position: int = 0) -> str | None:
        """Returns the type of an argument; None where it is no tensor."""
        value = entry["args"][position] if position < len(entry["args"]) else None
        return self.dtypes[value["tensor"]] if isinstance(value, dict) and "tensor" in value else None


def _product(entry: dict[str, Any], shapes: Shapes, left: int) -> float:
    a, b = shapes.argument(entry, left), shapes.argument(entry, left + 1)
    return 2.0 * math.prod(a) * (b[-1] if len(b) > 1 else 1) if a and b else 0.0


def _linear(entry: dict[str, Any], shapes: Shapes) -> float:
    x, weight = shapes.argument(entry, 0), shapes.argument(entry, 1)
    return 2.0 * math.prod(x) * weight[0] if x and weight else 0.0


def _linear_backward(entry: dict[str, Any], shapes: Shapes) -> float:
    x, weight = shapes.argument(entry, 0), shapes.argument(entry, 2)
    wanted = entry["args"][3] if len(entry["args"]) > 3 else [True, True]
    return 2.0 * math.prod(x) * weight[0] * sum(map(bool, wanted[:2])) if x and weight else 0.0


def _taps(size: int, kernel: int, out: int, stride: int, padding: int, dilation: int) -> int:
    """Pairs of an output position and a kernel position that meet an element of one dimension."""
    return sum(0 <= place * stride - padding + tap * dilation < size for place in range(out) for tap in range(kernel))


def _spatial(x: list[int], weight: list[int], out: list[int], arguments: list[Any]) -> float:
    stride, padding, dilation = arguments
    count = len(weight) - 2

    def per(value: list[int], axis: int) -> int:
        return value[axis] if len(value) == count else value[0]

    pairs = math.prod(
        _taps(x[2 + a], weight[2 + a], out[2 + a], per(stride, a), per(padding, a), per(dilation, a))
        for a in range(count)
    )
    return 2.0 * pairs * out[0] * weight[0] * weight[1]


def _convolution(entry: dict[str, Any], shapes: Shapes) -> float:
    x, weight = shapes.argument(entry, 0), shapes.argument(entry, 1)
    if not x or not weight:
        return 0.0
    out = entry["shapes"][0]["shape"]
    if entry["args"][6]:  # transposed: the same pairs with the sides exchanged
        return _spatial(out, weight, x, entry["args"][3:6])
    return _spatial(x, weight, out, entry["args"][3:6])


def _convolution_backward(entry: dict[str, Any], shapes: Shapes) -> float:
    out, x, weight = (shapes.argument(entry, position) for position in range(3))
    if not out or not x or not weight:
        return 0.0
    sides = (out, weight, x) if entry["args"][7] else (x, weight, out)
    return _spatial(*sides, entry["args"][4:7]) * sum(map(bool, entry["args"][10][:2]))


def _attention(entry: dict[str, Any], shapes: Shapes, first: int, products: int) -> float:
    query, key, value = (shapes.argument(entry, first + position) for position in range(3))
    if not query or not key or not value:
        return 0.0
    scores = math.prod(query[:-1]) * key[-2]
    # Of the two products forward, and of the five backward, these have the head dimension of the values.
    of_values = {2: 1, 5: 2}[products]
    return 2.0 * scores * (query[-1] * (products - of_values) + value[-1] * of_values)


def operator_flops(entry: dict[str, Any], shapes: Shapes) -> float:
    """Returns the operations of a recorded operator; only those of matrix products count."""
    name = entry["op"].split(".")[1]
    if name in ("mm", "bmm", "matmul", "mv", "dot"):
        return _product(entry, shapes, 0)
    if name in ("addmm", "baddbmm", "addbmm", "addmv"):
        return _product(entry, shapes, 1)
    if name == "linear":
        return _linear(entry, shapes)
    if name == "linear_backward":
        return _linear_backward(entry, shapes)
    if name in ("convolution", "convolution_overrideable", "_convolution"):
        return _convolution(entry, shapes)
    if name in ("convolution_backward", "convolution_backward_overrideable"):
        return _convolution_backward(entry, shapes)
    if name.startswith("_scaled_dot_product_"):
        backward = name.endswith("_backward")
        return _attention(entry, shapes, 1 if backward else 0, 5 if backward else 2)
    return 0.0
