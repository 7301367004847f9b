"""Stage `preserves`: with CUDA imitated on the CPU the program computes the same, and the own tests agree."""

from __future__ import annotations

from agents.context import Context
from agents.proving import verdict
from agents.state import State, Verdict


def preserves(state: State, context: Context) -> Verdict:
    """Judge the runs on the CPU and the repository's own tests."""
    return verdict("preserves", state, context)
