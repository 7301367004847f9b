"""The least a run must reach; what was measured is in the notes beside each number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

# Matching cases by suite and mode.
MINIMUM = {
    ("cases", "eager"): 63,
    ("cases", "fuse"): 58,
    ("cases", "compile"): 60,
    ("architectures", "eager"): 66,
    ("architectures", "fuse"): 66,
    ("architectures", "compile"): 24,
}


def counts(results: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Counts results by verdict."""
    return dict(sorted(Counter(line["verdict"] for line in results).items()))


def shortfalls(suite: str, mode: str, results: list[dict[str, Any]], total: int) -> list[str]:
    """Says how a whole run falls short; an empty list is a pass.

    Args:
        suite: The suite that was run.
        mode: How the device executed.
        results: Every result.
        total: Number of cases the suite has.
    """
    found = counts(results)
    reasons = [
        f"{found[verdict]} {verdict}(s): a process must neither die nor hang"
        for verdict in ("death", "hang")
        if found.get(verdict)
    ]
    least = MINIMUM[suite, mode]
    if len(results) < total:
        return reasons  # a selection says nothing about the whole
    if found.get("match", 0) < least:
        reasons.append(f"{found.get('match', 0)} cases match, at least {least} must")
    return reasons
