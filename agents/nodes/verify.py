"""Judges the migration stage by stage; it looks and runs, and has nothing that could change the tree."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.stages.checks import CHECKS
from agents.stages.common import not_run
from agents.state import STAGES, State, Verdict


def verify(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """One verdict for every stage; those that this version cannot judge are `not run`."""
    return {"verdicts": judge(state, runtime.context)}


def judge(state: State, context: Context) -> list[Verdict]:
    """The verdicts, told as they come."""
    verdicts: list[Verdict] = []
    for stage in STAGES:
        context.progress.working("verify", stage)
        check = CHECKS.get(stage)
        verdicts.append(check(state, context) if check else not_run(stage, "this version does not check it"))
    context.progress.done("verify", " | ".join(f"{v.stage} {v.result}" for v in verdicts))
    for verdict in verdicts:
        if verdict.stage in CHECKS and verdict.result != "pass":
            context.progress.note(f"{verdict.stage}: {verdict.reason}")
    return verdicts
