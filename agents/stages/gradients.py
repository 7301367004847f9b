"""Stage `gradients`: gradients of module outputs and of parameters equal those of the original."""

from __future__ import annotations

from agents.context import Context
from agents.proving import verdict
from agents.state import State, Verdict


def gradients(state: State, context: Context) -> Verdict:
    """Judge what the comparison with the original says."""
    return verdict("gradients", state, context)
