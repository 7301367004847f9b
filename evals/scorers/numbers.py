"""Check `numbers`: on the TPU a program prints the losses that the original prints with CUDA imitated on the CPU."""

from __future__ import annotations

from evals.scorers.case import Case, Outcome, compare


def check(case: Case) -> Outcome:
    """Compare what the entries print."""
    checks = case.task.checks
    if not checks.numbers:
        return Outcome("not applicable", "its programs print no numbers")
    for command in case.entries():
        found = case.migrated(command, "device with draws of the CPU" if checks.draws else "device")
        wanted = case.before(command, "imitated CUDA")
        outcome = compare(found, wanted, checks.tolerance, checks.numbers)
        if outcome.verdict == "fail":
            return outcome
    return Outcome("pass")
