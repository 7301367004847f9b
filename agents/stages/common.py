"""Verdicts in short, and the headline that a list of them comes to."""

from __future__ import annotations

from collections.abc import Iterable

from agents.state import Owner, Result, Verdict
from tools.errors import Exit


def passed(stage: str, reason: str, evidence: Iterable[str] = ()) -> Verdict:
    """The stage holds."""
    return Verdict(stage=stage, result=Result.PASS, reason=reason, evidence=list(evidence))


def failed(stage: str, reason: str, evidence: Iterable[str] = (), owner: Owner = Owner.CODE) -> Verdict:
    """The stage does not hold, and whose it is."""
    return Verdict(stage=stage, result=Result.FAIL, reason=reason, owner=owner, evidence=list(evidence))


def not_run(stage: str, reason: str, evidence: Iterable[str] = (), owner: Owner | None = None) -> Verdict:
    """Nothing is known about the stage, which is never a pass."""
    return Verdict(stage=stage, result=Result.NOT_RUN, reason=reason, owner=owner, evidence=list(evidence))


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst verdict of several entries, with the evidence of all."""
    order = {Result.FAIL: 0, Result.NOT_RUN: 1, Result.PASS: 2}
    found = min(verdicts, key=lambda verdict: order[verdict.result])
    return found.model_copy(update={"evidence": [line for verdict in verdicts for line in verdict.evidence]})


def headline(verdicts: Iterable[Verdict]) -> str:
    """The highest stage below which every stage passed; `none` when the first did not."""
    reached = "none"
    for verdict in verdicts:
        if verdict.result is not Result.PASS:
            break
        reached = verdict.stage
    return reached


def exit_code(verdicts: Iterable[Verdict]) -> Exit:
    """How the command ends: a failed stage, then an environment that could not do it, then success."""
    known = list(verdicts)
    if any(verdict.result is Result.FAIL for verdict in known):
        return Exit.FAILED
    if any(verdict.owner is Owner.ENVIRONMENT for verdict in known):
        return Exit.ENVIRONMENT
    return Exit.PASSED
