"""What a verdict says of known faults of the backend, and of programs that do not come to their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.compare import CompareOutput, Figures, Problem
from tools.judging import (
    Facts,
    VerifyRun,
    _compared,
    _Comparisons,
    _computes_the_same,
    _did_not_end,
    _failed,
    _no_longer_runs,
)
from tools.run import RunOutput
from tools.verify import _cause


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


def recorded(folder: Path, device: str, shape: list[int] | None) -> Path:
    """A recording of one call of Net, which fails where no output's shape is given."""
    given = {"shape": [2], "dtype": "int64", "device": device, "grad": False, "crc": 1}
    made = {"shape": shape, "dtype": "float32", "device": device, "grad": True, "crc": 2, "norm": 1.0, "low": 0.0,
            "high": 1.0, "odd": 0}  # fmt: skip
    call = {"name": "Net", "mode": "train", "call": 1, "step": 1}
    records = [
        {"kind": "module", "name": "Net", "type": "Net", "defined": None, "called": {"file": "train.py", "line": 7}},
        {"kind": "enter", **call, "depth": 1, "inputs": {"0": given}},
        {"kind": "leave", **call, "outputs": {"": made} if shape else {}},
    ]
    folder.mkdir()
    (folder / "0.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


def test_a_tensor_left_on_the_cpu_is_placed_where_it_is_handed_over(tmp_path):
    explained = {"outcome": "exception", "explanation": "expected tensor to be on tpu, got cpu"}
    run = VerifyRun(name="device", tree="migrated", recording=str(recorded(tmp_path / "a", "cpu", None)), **explained)
    verdict = _did_not_end("forward", run)
    assert (verdict.problems[0].place, verdict.problems[0].kind) == ("train.py:7", "device")
    moved = run.model_copy(update={"recording": str(recorded(tmp_path / "b", "tpu", None))})
    assert [problem.kind for problem in _did_not_end("forward", moved).problems] == ["exception"]


def test_a_crash_is_compared_until_then(tmp_path):
    facts = Facts()
    for name, shape in (("reference", [2, 4]), ("migrated", [2, 1, 4])):
        path = str(recorded(tmp_path / name, "cpu", shape))
        facts.add(VerifyRun(name=name, tree="", outcome="exception", explanation="it ended", recording=path))
    verdict = _no_longer_runs(facts.runs["migrated"], facts)
    assert "it ended. Before that, the output 0 of Net" in verdict.reason
    assert "[2, 1, 4] instead of [2, 4]" in verdict.problems[1].message


def constant(stage: str) -> Problem:
    return Problem(stage=stage, kind="degenerate", message="output 0 of Net is constant in both: it proves nothing")


def test_what_agrees_but_is_constant_is_not_run():
    facts = Facts()
    for name in ("reference", "migrated", "device"):
        facts.add(VerifyRun(name=name, tree=name, outcome="completed", explanation="", device={"kind": "simulated"}))
    comparisons = _Comparisons(facts)
    found = CompareOutput(problems=[constant("forward")], figures={"forward": Figures(compared=4)})
    comparisons.__dict__.update(float32=found, cpu=found)
    for verdict in (_compared("forward", comparisons), _computes_the_same(comparisons)):
        assert (verdict.result, verdict.owner) == ("not run", None)
        assert "constant in both" in verdict.reason
        assert "something else" not in verdict.reason
    differs = Problem(stage="forward", kind="error", message="output 0 of Net is off")
    comparisons.__dict__["float32"] = found.model_copy(update={"problems": [constant("forward"), differs]})
    comparisons.__dict__["cpu"] = CompareOutput()
    assert _compared("forward", comparisons).result == "fail"


@pytest.mark.parametrize(
    ("message", "owner"),
    [("failed to inline functions in MLIR module", "backend"), ("'Net' object has no attribute 'norm'", "code")],
)
def test_an_error_that_is_the_backends_own_is_not_blamed_on_the_code(message, owner):
    error = {"type": "RuntimeError", "message": message, "frames": []}
    output = RunOutput(outcome="exception", explanation="it ended", exception=error)
    run = VerifyRun(name="device", tree="", outcome="exception", explanation="it ended", cause=_cause(output))
    verdict = _did_not_end("forward", run)
    assert (verdict.result, verdict.owner) == ("fail", owner)
    assert ("autocast-layer-norm" in verdict.reason) == (owner == "backend")
