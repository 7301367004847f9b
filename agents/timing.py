"""Wraps the nodes of a graph: an interruption ends before one begins, and the state keeps how long each took."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from langgraph.runtime import Runtime

from agents import interrupts
from agents.context import Context
from agents.state import State

S = TypeVar("S", bound=State)


def timed(
    name: str,
    node: Callable[[S, Runtime[Context]], dict[str, object]],
    context_of: Callable[[S], Context] | None = None,
) -> Any:
    """A node that adds its seconds to `durations`.

    Args:
        name: The node's own.
        node: What it does.
        context_of: Makes what the node works with, where the caller of the graph cannot bring it.
    """

    def around(state: S, runtime: Runtime[Context]) -> dict[str, object]:
        interrupts.check()
        if context_of is not None:
            runtime = runtime.override(context=context_of(state))
        began = time.monotonic()
        updates = node(state, runtime)
        spent = state.durations.get(name, 0.0) + time.monotonic() - began
        return {**updates, "durations": {name: spent}}

    return around
