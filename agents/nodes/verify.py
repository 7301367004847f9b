"""Judges the migration stage by stage; it looks and runs, and has nothing that could change the tree."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.stages import targeted
from agents.stages.checks import CHECKS
from agents.state import STAGES, State, Verdict


def verify(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """One verdict for every stage; the profile judges the last two."""
    return {"verdicts": judge(state, runtime.context)}


def judge(state: State, context: Context) -> list[Verdict]:
    """The verdicts, told as they come."""
    verdicts: list[Verdict] = []
    for stage in STAGES:
        context.progress.working("verify", stage)
        check = CHECKS.get(stage)
        verdicts.append(check(state, context) if check else targeted.before(stage, state))
    context.progress.done("verify", " | ".join(f"{v.stage} {v.result}" for v in verdicts))
    for verdict in verdicts:
        if verdict.stage in CHECKS and verdict.result != "pass":
            context.progress.note(f"{verdict.stage}: {verdict.reason}")
    return verdicts
