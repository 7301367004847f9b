"""Check `cuda`: with CUDA imitated on the CPU the migrated program prints what the original prints."""

from __future__ import annotations

from evals.scorers.case import Case, Outcome, differ, ended_badly

_SAME = 1e-6


def check(case: Case) -> Outcome:
    """Compare what the entries print."""
    for command in case.entries():
        wanted = case.before(command, "imitated CUDA")
        found = case.migrated(command, "imitated CUDA")
        if bad := ended_badly(found):
            return bad
        if case.task.checks.numbers and (said := differ(found, wanted, _SAME, case.task.checks.numbers)):
            return Outcome("fail", said)
    return Outcome("pass")
