"""Check `cpu`: where the original runs on a machine with no accelerator, the migrated program does so the same way."""

from __future__ import annotations

from evals.scorers.case import SAME, Case, Outcome, compare
from tools.commands import parse


def check(case: Case) -> Outcome:
    """Run both with the original's own way to ask for the CPU."""
    checks = case.task.checks
    if not checks.cpu_entry:
        return Outcome("not applicable", "the original cannot run without CUDA")
    command = parse(checks.cpu_entry)
    wanted = case.before(command, "cpu")
    return compare(case.migrated(command, "cpu"), wanted, SAME, checks.numbers)
