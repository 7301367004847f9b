"""Imports go one way, between the rooms and inside them, also those that stand in a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BELOW = {"torchtpu": set(), "tools": {"torchtpu"}, "agents": {"tools", "torchtpu"}}
EVALS = {"evals": {"agents", "tools", "torchtpu"}}


def modules() -> dict[str, Path]:
    """Every module of the rooms by its dotted name; the console script's package and the tasks are no part of them."""
    found = {}
    for room in (*BELOW, *EVALS):
        for path in (ROOT / room).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "tasks" not in parts and "command" not in parts:
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module


def packages(name: str) -> set[str]:
    """The packages whose `__init__` runs before a module's own code."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


def graph() -> dict[str, set[str]]:
    known = modules()
    found = {}
    for name, path in known.items():
        direct = {other for other in imported(path, known) if other in known}
        # Its own packages were begun before it was.
        through = {package for other in direct for package in packages(other)} - packages(name) - {name}
        found[name] = direct | (through & known.keys())
    return found


def test_no_module_imports_itself_by_a_detour():
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_no_room_imports_one_above_it():
    allowed = BELOW | EVALS
    wrong = [
        (name, other)
        for name, others in graph().items()
        for other in others
        if (room := name.split(".")[0]) != (its := other.split(".")[0]) and its not in allowed[room]
    ]
    assert not wrong
