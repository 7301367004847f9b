"""The suites there are: operator and training cases, and model architectures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAMES = ("cases", "architectures")


def load(suite: str) -> dict[str, Callable[[Any], Any]]:
    """Returns the cases of a suite by name, in a fixed order.

    Raises:
        ValueError: There is no such suite.
    """
    if suite == "cases":
        from evals.conformance import cases

        return dict(cases.load())
    if suite == "architectures":
        from evals.conformance import architectures

        return dict(architectures.load())
    if suite == "faults":
        from evals.conformance import faults

        return dict(faults.load())
    raise ValueError(f"no suite {suite!r}; there are {', '.join(NAMES)}")


def names(suite: str, mode: str) -> list[str]:
    """Returns the names of the cases a whole run of a suite has in a mode."""
    if suite == "architectures" and mode == "compile":
        from evals.conformance import architectures

        return list(architectures.COMPILED)
    return list(load(suite))
