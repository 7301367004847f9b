"""Counts the operations of matrix products and convolutions in a compiled program."""

from __future__ import annotations

import math
import re

from torchtpu.hlo.parse import Instruction, Module

_WINDOW = re.compile(r"window=\{([^}]*)\}")
_LABELS = re.compile(r"dim_labels=([\w?]+)_([\w?]+)->([\w?]+)")
_CONTRACTING = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")


def _window(text: str) -> dict[str, list[str]]:
    match = _WINDOW.search(text)
    parts = dict(part.split("=", 1) for part in match[1].split()) if match else {}
    return {name: value.split("x") for name, value in parts.items()}


def _ints(window: dict[str, list[str]], name: str, count: int, default: int) -> list[int]:
    return [int(value) for value in window.get(name, [])] or [default] * count


def _valid_pairs(size: int, kernel: int, out: int, stride: int, low: int, base: int, dilation: int) -> int:
    """How many pairs of an output position and a kernel position meet an element and not padding."""
    extent = (size - 1) * base + 1
    pairs = 0
    for tap in range(kernel):
        offset = tap * dilation - low
        if base == 1:
            # Positions p with 0 <= p * stride + offset < extent.
            first = max(0, math.ceil(-offset / stride))
            last = min(out - 1, (extent - 1 - offset) // stride)
            pairs += max(0, last - first + 1)
        else:
            pairs += sum(1 for p in range(out) if 0 <= (at := p * stride + offset) < extent and at % base == 0)
    return pairs


def convolution_flops(instruction: Instruction, module: Module) -> float:
    """Operations of one convolution, which is also how TPUs do matrix products; padding is not counted."""
    labels = _LABELS.search(instruction.text)
    operands = [module.by_name[name].shapes[0] for name in instruction.operands[:2]]
    if labels is None or len(operands) < 2 or not instruction.shapes:
        return 0.0
    left, right, out = operands[0].dims, operands[1].dims, instruction.shapes[0].dims
    spatial = [label for label in labels[3] if label.isdigit()]
    window = _window(instruction.text)
    count = len(spatial)
    strides, bases = _ints(window, "stride", count, 1), _ints(window, "lhs_dilate", count, 1)
    dilations = _ints(window, "rhs_dilate", count, 1)
    lows = [int(value.split("_")[0]) for value in window.get("pad", [])] or [0] * count
    pairs = 1
    for number, label in enumerate(spatial):
        pairs *= _valid_pairs(
            left[labels[1].index(label)],
            right[labels[2].index(label)],
            out[labels[3].index(label)],
            strides[number],
            lows[number],
            bases[number],
            dilations[number],
        )
    features_in, features_out = right[labels[2].index("i")], out[labels[3].index("f")]
    batch = out[labels[3].index("b")]
    return 2.0 * pairs * features_in * features_out * batch


def dot_flops(instruction: Instruction, module: Module) -> float:
    """Operations of one dot."""
    left = module.by_name[instruction.operands[0]].shapes[0].dims
    match = _CONTRACTING.search(instruction.text)
    contracted = math.prod(left[int(axis)] for axis in match[1].split(",") if axis) if match else 1
    return 2.0 * instruction.shapes[0].elements * contracted


def instruction_flops(instruction: Instruction, module: Module, seen: tuple[str, ...] = ()) -> float:
    """Operations of matrix products and convolutions in an instruction and all it calls, once each."""
    if instruction.opcode == "convolution":
        return convolution_flops(instruction, module)
    if instruction.opcode == "dot":
        return dot_flops(instruction, module)
    total = 0.0
    for name in instruction.called:
        if name not in seen:
            inner = module.computations.get(name, [])
            total += sum(instruction_flops(one, module, (*seen, name)) for one in inner)
    return total


_MOVES = frozenset(
    "parameter constant bitcast broadcast reshape transpose copy tuple get-tuple-element iota slice pad convolution"
    " dot concatenate fusion bitcast-convert".split()
)
_SLOW = frozenset("exponential log log-plus-one tanh sqrt rsqrt cbrt divide power sine cosine logistic erf".split())
_SLOW_WEIGHT = 6.0


def vector_operations(instruction: Instruction, module: Module, seen: tuple[str, ...] = ()) -> float:
    """Element-wise operations of an instruction and all it calls; a transcendental one counts for several."""
    total = 0.0
    if instruction.opcode not in _MOVES:
        sizes = [shape.elements for shape in instruction.shapes]
        if instruction.opcode.startswith("reduce"):
            sizes += [shape.elements for name in instruction.operands for shape in module.by_name[name].shapes]
        total = max(sizes, default=0) * (_SLOW_WEIGHT if instruction.opcode in _SLOW else 1.0)
    for name in instruction.called if instruction.opcode == "fusion" else ():
        if name not in seen:
            total += sum(vector_operations(one, module, (*seen, name)) for one in module.computations.get(name, []))
    return total
