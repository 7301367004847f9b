"""Stages `fits` and `fast`: what a profile makes of them, and why they are not run."""

from __future__ import annotations

from typing import Any

import pytest

from agents.stages import targeted
from agents.state import Entry, Request, Result, RunRecord, State
from tests.tools.test_profile_outputs import MEMORY, step
from tests.torchtpu.test_hlo import PROGRAM
from tools.profile import ProfileOutput, Timing
from torchtpu.compiler import Compiled
from torchtpu.profile import Profiler
from torchtpu.targets import find


def state(**asked: Any) -> State:
    run = RunRecord(entry="python t.py", attempt=1, outcome="completed", explanation="")
    request = Request(source=".", created="now", **asked)
    return State(run_id="x", request=request, entries=[Entry(command="python t.py", origin="--entry")], runs=[run])


def output(compiled: Compiled, reads: bool) -> ProfileOutput:
    recorded = step() if reads else step() | {"reads": []}
    found = Profiler(recorded, compiled, find("v5e")).profile()
    return ProfileOutput(outcome=found["outcome"], target="v5e", command="c", timing=Timing(), profile=found)


def test_why_nothing_is_profiled() -> None:
    assert "--target" in (targeted.reason(state()) or "")
    assert targeted.reason(state(target="v6e-8")) is None
    assert "dry run" in (targeted.reason(state(target="v6e-8", dry_run=True)) or "")
    broken = state(target="v6e-8")
    broken.runs[0].outcome = "exception"
    assert targeted.reason(broken) == "the program does not run"


def test_a_step_that_waits_for_a_value_is_not_fast() -> None:
    fits, fast = targeted.verdicts(output(Compiled("ok", memory=MEMORY, hlo=PROGRAM), reads=True), ["page"])
    assert fits.result is Result.PASS
    assert fast.result is Result.FAIL
    assert "run.py:4" in fast.reason
    assert "estimated, not measured" in fast.reason
    assert fast.evidence == ["page"]


def test_what_is_not_checked_is_never_a_pass() -> None:
    _, fast = targeted.verdicts(output(Compiled("ok", memory=MEMORY, hlo=PROGRAM), reads=False), [])
    assert fast.result is Result.NOT_RUN
    assert "estimated, not measured" in fast.reason


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("out-of-memory", Result.FAIL), ("time-limit", Result.NOT_RUN), ("failed", Result.NOT_RUN)],
)
def test_a_step_without_a_program(outcome: str, expected: Result) -> None:
    fits, fast = targeted.verdicts(output(Compiled(outcome, "too large"), reads=False), [])
    assert fits.result is expected
    assert fast.result is Result.NOT_RUN
