"""Stage `forward`: module inputs and outputs of the migrated program equal those of the original."""

from __future__ import annotations

from agents.context import Context
from agents.proving import verdict
from agents.state import State, Verdict


def forward(state: State, context: Context) -> Verdict:
    """Judge what the comparison with the original says."""
    return verdict("forward", state, context)
