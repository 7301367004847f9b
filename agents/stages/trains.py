"""Stage `trains`: losses, schedules, parameters and statistics follow the original's."""

from __future__ import annotations

from agents.context import Context
from agents.proving import verdict
from agents.state import State, Verdict


def trains(state: State, context: Context) -> Verdict:
    """Judge what the comparison with the original says."""
    return verdict("trains", state, context)
