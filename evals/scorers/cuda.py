"""Check `cuda`: with CUDA imitated on the CPU the migrated program prints what the original prints."""

from __future__ import annotations

from evals.scorers.case import SAME, Case, Outcome, compare


def check(case: Case) -> Outcome:
    """Compare what the entries print."""
    for command in case.entries():
        wanted = case.before(command, "imitated CUDA")
        found = case.migrated(command, "imitated CUDA")
        outcome = compare(found, wanted, SAME, case.task.checks.numbers)
        if outcome.verdict == "fail":
            return outcome
    return Outcome("pass")
