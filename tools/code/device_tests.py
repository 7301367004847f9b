"""Tests that compare a device with CUDA, and what stands under them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tools.code.cuda_api import API, Kind, canonical
from tools.code.edits import Edit
from tools.code.guards import dotted
from tools.code.literals import DEVICE_WORD, placements
from tools.code.module import Module, string

_DATA_PARALLEL = re.compile(r"(?<!Distributed)DataParallel\b")
_NO_DEVICE = re.compile(r"(?i)map|devices|count|num_|_ids?$")
_AUTOCAST = re.compile(r"\bautocast\(")


def compared_device(test: ast.expr) -> ast.expr | None:
    """The device of ``d == "cuda"``, ``"cuda" in d``, ``d.startswith("cuda")``; None for any other test."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], ast.Eq):
            for literal, other in ((right, left), (left, right)):
                if string(literal) == "cuda":
                    return other
        if isinstance(test.ops[0], ast.In) and string(left) == "cuda":
            return right
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
        if len(test.args) == 1 and string(test.args[0]) == "cuda":
            return test.func.value
    return None


def type_text(module: Module, test: ast.expr, torch_device: str) -> str | None:
    """The device type behind a comparison as an expression, None where the compared thing is no plain device.

    Args:
        module: the file.
        test: a comparison that ``compared_device`` knows.
        torch_device: how the file writes ``torch.device``.
    """
    device = compared_device(test)
    if isinstance(device, ast.Call) and isinstance(device.func, ast.Name) and device.func.id == "str":
        device = device.args[0] if len(device.args) == 1 else None
    if device is None:
        return None
    if isinstance(device, ast.Attribute) and device.attr == "type":
        return module.text(device)
    name = dotted(device)
    last = name.rpartition(".")[2] if name else ""
    if name is None or not DEVICE_WORD.search(last) or _NO_DEVICE.search(last):
        return None
    return f"{torch_device}({module.text(device)}).type"


def off_cpu(module: Module, test: ast.expr, kind: str, quote: str) -> Edit:
    """An edit that asks for any device that computes and is not the CPU, in place of a test for CUDA.

    A tensor on "meta" computes nothing and goes the CPU's way, as it did. ``not`` before the test becomes part of it.

    Args:
        module: the file.
        test: what is replaced.
        kind: the device type, as text.
        quote: the quotes to write.
    """
    hosts = f"({quote}cpu{quote}, {quote}meta{quote})"
    parent = module.parent(test)
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return module.replace(parent, _as_operand(module, parent, f"{kind} in {hosts}"))
    return module.replace(test, _as_operand(module, test, f"{kind} not in {hosts}"))


def _as_operand(module: Module, node: ast.expr, text: str) -> str:
    return f"({text})" if isinstance(module.parent(node), ast.UnaryOp | ast.Compare | ast.BinOp) else text


def places(module: Module, region: Iterable[ast.AST], *, autocast: bool = False) -> bool:
    """Whether a region moves something to a device: by a literal, ``.cuda()``, ``.to(device)`` or a legacy type.

    Args:
        module: the file.
        region: statements or an expression.
        autocast: whether entering autocast counts too.
    """
    holders = list(region)
    known = set(map(id, placements(module)))
    for holder in holders:
        if autocast and _AUTOCAST.search(module.text(holder)):
            return True
        for node in ast.walk(holder):
            if id(node) in known or _moves(node):
                return True
    return False


def _moves(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.args:
        name = dotted(node.args[0])
        return name is not None and bool(DEVICE_WORD.search(name.rpartition(".")[2]))
    return False


_ELSEWHERE = re.compile(
    r"(?i)\b(xformers|pyg_lib|bitsandbytes|bnb|flash_?attn\w*|tensorrt|trt|triton|cupy|pynvml|nvml\w*|apex|megatron|dali|"
    r"transformer_engine|cudnn_?version|cuda_?(kernel|ext|graph)\w*|load_inline)\b|nvidia"
)
_OURS = frozenset({"is_available", "device_count", "OutOfMemoryError"})


def needs_cuda(module: Module, region: Iterable[ast.AST]) -> bool:
    """Whether a region holds what only CUDA has, so that no other accelerator may be let into it.

    That is a part of ``torch.cuda`` that no rule makes work elsewhere, or a library for CUDA.
    """
    for holder in region:
        if _ELSEWHERE.search(module.text(holder)):
            return True
        for node in ast.walk(holder):
            name = module.names.qualify(node) if isinstance(node, ast.Attribute | ast.Name) else None
            if name and name.startswith("torch.cuda.") and _is_left_alone(name):
                return True
    return False


def _is_left_alone(dotted_name: str) -> bool:
    name = canonical(dotted_name)
    if name is None:
        rest = dotted_name.removeprefix("torch.cuda.")
        return rest.startswith("_") or "." not in rest
    return API[name].kind == Kind.ADVICE and name not in _OURS


def replicates(module: Module, region: Iterable[ast.AST]) -> bool:
    """Whether a region uses DataParallel, which is for CUDA alone."""
    return any(_DATA_PARALLEL.search(module.text(node)) for node in region)


def conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a conjunction, or the test itself."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        yield from test.values
    else:
        yield test
