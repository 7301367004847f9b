"""Rates with their intervals, and the sets of texts with right answers that they are measured on."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share (Wilson 1927), by default at 95 %."""
    if not total:
        return 0.0, 1.0
    share, square = right / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def line(what: str, right: int, total: int) -> str:
    """A rate for people."""
    low, high = wilson(right, total)
    return f"{what:<10} {right}/{total} = {right / total:.3f}  [{low:.3f}, {high:.3f}]"


def answers(file: Path) -> dict[str, list[str]]:
    """Every text of a set, with the entries that are right for it."""
    loaded: dict[str, list[str]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return loaded
