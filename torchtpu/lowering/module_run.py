"""Runs one module on shapes: ``python -m torchtpu.lowering.module_run package.name:Thing --input f32[8,3]``.

It is a program like any other for the recorder: the thing is made, called once, and in training its mean
output is sent backward.
"""

from __future__ import annotations

import argparse
import importlib
import re
from typing import Any

_INPUT = re.compile(r"(?P<dtype>[a-z]+\d+)\[(?P<shape>\d+(?:,\d+)*)?\]")
_SHORT = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "i64": "int64", "s64": "int64", "i32": "int32"}


def parse_input(text: str) -> tuple[list[int], str]:
    """Returns shape and type of text such as ``bfloat16[8,1024]`` or ``i64[8]``.

    Raises:
        ValueError: The text says neither.
    """
    match = _INPUT.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ValueError(f"'{text}' is no input; write it like bfloat16[8,1024] or int64[8]")
    shape = [int(size) for size in match["shape"].split(",")] if match["shape"] else []
    return shape, _SHORT.get(match["dtype"], match["dtype"])


def _made(name: str, torch: Any) -> Any:
    place, _, attribute = name.partition(":")
    thing = getattr(importlib.import_module(place), attribute)
    if isinstance(thing, torch.nn.Module) or not callable(thing):
        return thing
    # A class or a function that makes a module, without a host's memory for its weights.
    if isinstance(thing, type):
        with torch.device("meta"):
            return thing()
    return thing


def _scalar(result: Any, torch: Any) -> Any:
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return sum(leaf.float().mean() for leaf in leaves if leaf.is_floating_point() and leaf.requires_grad)


def main() -> None:
    """Makes the thing and its inputs on the device and records one call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--input", action="append", default=[], type=parse_input)
    parser.add_argument("--dtype", help="type of the module's parameters")
    parser.add_argument("--train", action="store_true")
    args = parser.parse_args()
    import torch

    from torchtpu.lowering import capture

    thing = _made(args.name, torch)
    if isinstance(thing, torch.nn.Module):
        thing = thing.to_empty(device="tpu").train(args.train)
        thing = thing.to(getattr(torch, args.dtype)) if args.dtype else thing
    inputs = [torch.zeros(shape, dtype=getattr(torch, dtype), device="tpu") for shape, dtype in args.input]
    with torch.set_grad_enabled(args.train), capture.recording(torch):
        result = thing(*inputs)
        if args.train:
            _scalar(result, torch).backward()
    del result


if __name__ == "__main__":
    main()
