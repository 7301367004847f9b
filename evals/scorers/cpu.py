"""Check `cpu`: where the original runs on a machine with no accelerator, the migrated program does so the same way."""

from __future__ import annotations

from evals.scorers.case import Case, Outcome, differ, ended_badly
from tools.commands import parse

_SAME = 1e-6


def check(case: Case) -> Outcome:
    """Run both with the original's own way to ask for the CPU."""
    checks = case.task.checks
    if not checks.cpu_entry:
        return Outcome("not applicable", "the original cannot run without CUDA")
    command = parse(checks.cpu_entry)
    wanted = case.before(command, "cpu")
    found = case.migrated(command, "cpu")
    if bad := ended_badly(found):
        return bad
    said = differ(found, wanted, _SAME, checks.numbers) if checks.numbers else ""
    return Outcome("fail", said) if said else Outcome("pass")
