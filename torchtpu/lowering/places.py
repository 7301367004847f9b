"""Picks from an operator's stack the line a reader wants to see: the user's own, or else the innermost."""

from __future__ import annotations

from typing import Any

Place = tuple[str, int, str]
_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python3")
# Names of the functions a step is replayed by begin with it and the operator's number.
OPERATOR = "operator"
NOWHERE: Place = ("<unknown>", 0, "unknown")


def is_users(file: str) -> bool:
    """Says whether a file of a recorded stack belongs to the user and not to an installed package."""
    return not any(part in file for part in _INSTALLED) and not file.startswith("<")


def stack_of(step: dict[str, Any], entry: dict[str, Any]) -> list[Place]:
    """Returns the stack an operator belongs to, innermost first: in backward, that of the forward operator."""
    number = entry.get("forward_stack")
    if number is None:
        number = entry["stack"]
    return [(file, line, function) for file, line, function in step["stacks"][number]]


def place_of(step: dict[str, Any], entry: dict[str, Any]) -> Place:
    """Returns file, line and function of the user that an operator belongs to; else of who called it."""
    stack = stack_of(step, entry)
    return next((place for place in stack if is_users(place[0])), stack[0] if stack else NOWHERE)


def library_place(stack: list[Place]) -> str | None:
    """Returns the innermost line of an installed library other than torch, such as a model's; None in own code."""
    for file, line, _ in stack:
        if is_users(file):
            return None
        short = file.rpartition("-packages/")[2]
        if short and not short.startswith(("torch/", "torch_tpu/", "/")):
            return f"{short}:{line}"
    return None
