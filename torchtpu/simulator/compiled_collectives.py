"""Lets torch.compile handle programs with collectives, which the host carries.

torch_tpu splits a graph at its collectives and compiles every part. A part that holds a collective
is run operator by operator instead: its data leaves the device, so there is nothing to compile.
"""

from __future__ import annotations

import functools
from typing import Any


def _has_collective(module: Any) -> bool:
    from torch_tpu._internal.distributed import collective_ops

    for node in module.graph.nodes:
        packet = getattr(node.target, "overloadpacket", node.target)
        if node.op == "call_function" and collective_ops.is_collective_op(packet):
            return True
    return False


def install() -> None:
    """Changes how torch_tpu compiles the parts of a split graph."""
    from torch_tpu._internal.compile import split_compiler

    parts = split_compiler._SubmodCompiler
    compile_part = parts.compile_submod

    @functools.wraps(compile_part)
    def compile_submod(self: Any, input_mod: Any, args: Any, kwargs: Any, **names: Any) -> Any:
        if _has_collective(input_mod):
            return input_mod
        return compile_part(self, input_mod, args, kwargs, **names)

    whole = split_compiler.SplitCompiler
    compile_graph = whole._compile_graph

    @functools.wraps(compile_graph)
    def always_split(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Without the split a collective would be compiled into a program with its neighbours.
        return compile_graph(self, *args, **(kwargs | {"materialize_collectives": True}))

    parts.compile_submod = compile_submod
    whole._compile_graph = always_split
