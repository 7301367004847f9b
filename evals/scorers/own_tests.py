"""Check `own_tests`: the repository's own tests that passed on the CPU are there and pass."""

from __future__ import annotations

from pathlib import Path

from evals.scorers.case import Broken, Case, Outcome
from evals.scorers.running import fresh_copy
from tools.own_tests import TestsOutput, TestsRequest, has_tests, lost, run_tests


def check(case: Case) -> Outcome:
    """Run the tests of both trees and compare them one by one."""
    if not has_tests(case.original):
        return Outcome("not applicable", "it has no tests")
    before, after = _tests(case, "original", case.original), _tests(case, "migrated", case.tree)
    if not before.count("passed") or before.count("failed"):
        raise Broken(f"the original's own tests: {before.count('passed')} pass, {before.count('failed')} fail")
    gone = lost(before, after)
    return Outcome("fail", f"{gone[0].name} {gone[0].how}; {len(gone)} in all") if gone else Outcome("pass")


def _tests(case: Case, side: str, tree: Path) -> TestsOutput:
    place = case.place / f"{side}-tests"
    copy = fresh_copy(tree, place)
    return run_tests(
        TestsRequest(
            cwd=copy, writable=place, log=place / "log", python=case.limits.python, timeout=case.limits.timeout
        )
    )
