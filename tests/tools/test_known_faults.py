"""A verdict whose failure is a known fault of the backend says so."""

from __future__ import annotations

import pytest

from tools.compare import CompareOutput, Problem
from tools.judging import Facts, VerifyRun, _Comparisons, _failed


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("the buffer Net.norm.running_mean and 1 more never changes, unlike in the original", "batch-norm-statistics"),
        ("a.weight and b.weight are one parameter in the original and separate ones in the migrated program", "untied"),
        ("loss number 3 is 2.5, 2.4 in the original", "not told apart"),
    ],
)
def test_a_known_fault_of_the_backend_is_named(message, said):
    facts = Facts()
    facts.add(VerifyRun(name="migrated", tree="migrated", outcome="completed", explanation=""))
    facts.add(
        VerifyRun(name="device", tree="migrated", outcome="completed", explanation="", device={"kind": "simulated"})
    )
    comparisons = _Comparisons(facts)
    comparisons.__dict__["cpu"] = CompareOutput()  # on the CPU both agree
    verdict = _failed("trains", [Problem(stage="trains", kind="statistics", message=message)], {}, comparisons)
    assert verdict.owner == "backend"
    assert said in verdict.reason
