"""Estimates speed and memory on a TPU; says that it did not run."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.state import State


def profile(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Say that nothing is estimated; the stages `fits` and `fast` stay `not run`."""
    runtime.context.progress.working("profile", f"not run for {state.run_id}")
    return {}
