"""Verdicts from what a run showed, the headline, and what may be imported."""

from __future__ import annotations

import ast

import pytest

from agents.diagnosis import explain
from agents.stages.common import exit_code, failed, headline, not_run, passed
from agents.stages.imports import only_defines
from agents.stages.parses import parse_problem
from agents.stages.runs import judge
from agents.state import Owner, RunRecord
from tools.errors import Exit

GOOD = {
    "entry": "python train.py",
    "attempt": 1,
    "outcome": "completed",
    "explanation": "It ended well.",
    "device": {"kind": "simulated", "name": "simulated TPU"},
    "steps": 3,
    "device_steps": 3,
}


def record(**changes):
    return RunRecord(**{**GOOD, **changes})


def verdict(**changes):
    changed = record(**changes)
    diagnosis = None if changed.ended_well else explain(changed, changed_root)
    return judge(changed, diagnosis)


changed_root = __import__("pathlib").Path("/nonexistent")


@pytest.mark.parametrize("outcome", ["completed", "stopped-at-steps"])
def test_steps_on_the_device_pass(outcome):
    assert verdict(outcome=outcome).result == "pass"


def test_an_unknown_device_is_never_a_pass():
    assert verdict(device=None).result == "not run"


def test_operations_without_an_optimizer_pass():
    assert verdict(steps=0, device_steps=0, device_ops=12).result == "pass"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device_steps": 0}, "nothing of it ran on the TPU"),
        ({"device_steps": 0, "device_ops": 5}, "none of its 3 optimizer steps"),
        ({"warnings": [{"kind": "cpu-fallback", "message": "x", "file": "a.py", "line": 3}]}, "a.py:3"),
        ({"warnings": [{"kind": "amp-disabled", "message": "off"}]}, "mixed precision"),
        ({"outcome": "hang", "explanation": "It hung."}, "It hung."),
    ],
)
def test_what_fails(changes, said):
    seen = verdict(**changes)
    assert seen.result == "fail"
    assert said in seen.reason


def test_other_warnings_do_not_fail():
    assert verdict(warnings=[{"kind": "other", "message": "slow"}]).result == "pass"


def test_a_run_on_the_cpu_says_nothing():
    assert verdict(device={"kind": "cpu"}, device_steps=0).result == "not run"


@pytest.mark.parametrize(
    ("kind", "message", "result", "owner"),
    [
        ("ModuleNotFoundError", "No module named 'einops'", "not run", Owner.ENVIRONMENT),
        ("FileNotFoundError", "[Errno 2] data.bin", "not run", Owner.ENVIRONMENT),
        ("torchtpu.simulator.limits.SimulatorLimit", "no fft here", "not run", Owner.SIMULATOR),
        ("NotImplementedError", "'aten::x' is not implemented for TPU. Please file", "fail", Owner.BACKEND),
        ("ValueError", "shapes differ", "fail", Owner.CODE),
    ],
)
def test_whose_an_exception_is(kind, message, result, owner):
    exception = {"type": kind, "message": message, "frames": [{"file": "train.py", "line": 9}]}
    seen = verdict(outcome="exception", exception=exception)
    assert (seen.result, seen.owner) == (result, owner)


@pytest.mark.parametrize(
    ("native", "owner"),
    [
        ({}, Owner.CODE),
        ({"fatal": "Fatal Python error: none_dealloc: deallocating None"}, Owner.CODE),
        ({"fatal": "F1130 10:00:00.000000    1 pjrt.cc:1] Check failed: ok"}, Owner.BACKEND),
        ({"backend_frame": 'File "/x/site-packages/torch_tpu/a.py", line 1 in f'}, Owner.BACKEND),
        ({"native_tail": ["the simulated device lacks it"]}, Owner.SIMULATOR),
    ],
)
def test_an_abort_is_the_backends_only_with_evidence(native, owner):
    assert verdict(outcome="abort", signal="SIGABRT", **native).owner == owner


def test_the_headline_stops_at_the_first_stage_that_did_not_pass():
    stages = [passed("parses", ""), passed("clean", ""), not_run("runs", ""), passed("forward", "")]
    assert headline(stages) == "clean"
    assert headline([failed("parses", ""), passed("clean", "")]) == "none"


def test_exit_codes():
    assert exit_code([passed("parses", ""), not_run("runs", "")]) is Exit.PASSED
    assert exit_code([not_run("runs", "", owner=Owner.ENVIRONMENT)]) is Exit.ENVIRONMENT
    assert exit_code([not_run("runs", "", owner=Owner.ENVIRONMENT), failed("clean", "")]) is Exit.FAILED


@pytest.mark.parametrize(
    ("name", "text", "good"),
    [
        ("a.py", "x = '\\d'\n", True),
        ("a.py", "return 1\n", False),
        ("a.json", "{}", True),
        ("a.json", "{,}", False),
        ("a.toml", "a = 1", True),
        ("a.toml", "a = ", False),
        ("a.yaml", "a: 1\n---\nb: !tag x\n", True),
        ("a.yaml", "a: [", False),
        ("a.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', True),
        ("a.ipynb", '{"cells": 3}', False),
        ("Dockerfile", "FROM x", True),
    ],
)
def test_files_are_parsed_by_their_kind(tmp_path, name, text, good):
    path = tmp_path / name
    path.write_text(text)
    assert (parse_problem(path) is None) is good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("import a\nX = 1\ndef f(): train()\nclass A: pass\n", True),
        ("try:\n  import a\nexcept ImportError:\n  a = None\n", True),
        ("if __name__ == '__main__':\n  main()\n", True),
        ("device = torch.device('cpu')\n", True),
        ("main()\n", False),
        ("for i in range(9): train()\n", False),
        ("model = build()\n", False),
    ],
)
def test_only_modules_that_define_things_are_imported(text, good):
    assert only_defines(ast.parse(text)) is good


def test_a_known_failure_is_named_with_its_remedy_and_rule():
    frames = [{"file": "train.py", "line": 7, "source": "scaler.step(optimizer)"}]
    message = "operator 'aten::_amp_foreach_non_finite_check_and_unscale_' is not implemented for TPU."
    failure = {"type": "RuntimeError", "message": message, "frames": frames}
    found = explain(record(outcome="exception", exception=failure), changed_root)
    assert (found.knowledge, found.confidence, found.owner) == ("scaler-on-tpu", "certain", Owner.CODE)
    assert found.rules == ["TPU303"]
    assert found.where == "train.py:7"
    assert "Loss scaling is for float16" in found.cause
    assert "operator-missing" in found.others


def test_a_package_for_cuda_alone_is_not_to_be_installed():
    failure = {"type": "ModuleNotFoundError", "message": "No module named 'flash_attn'", "frames": []}
    found = explain(record(outcome="exception", exception=failure), changed_root)
    assert found.knowledge == "flash-attention-missing"
    assert "Do not install" in found.remedy


def test_what_was_only_printed_explains_no_exception(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("torch._dynamo hit config.recompile_limit (8)\n")
    failure = {"type": "KeyError", "message": "'epoch'", "frames": []}
    found = explain(record(outcome="exception", exception=failure, log=str(log)), changed_root)
    assert found.knowledge is None
    assert found.others == ["recompile-limit"]


def test_a_log_that_is_gone_is_no_fault():
    found = explain(record(outcome="memory-limit", log="/nonexistent/log"), changed_root)
    assert found.knowledge == "host-memory-full"


@pytest.mark.parametrize(
    ("output", "result", "said"),
    [
        (
            'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
            "RuntimeError: operator 'aten::trace' is not implemented for TPU\ntraining stopped\n",
            "fail",
            "aten::trace",
        ),
        ("giving up: operator 'aten::trace' is not implemented for TPU\n", "fail", "went on"),
        (
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'wandb'\n",
            "pass",
            "an exception that it caught: KeyError: 'wandb'",
        ),
        ("step 3 loss 0.1\n", "pass", "3 steps on the simulated device"),
        (
            "W0000 00:00:1796 1 pjrt_c_api_status_utils.cc:146] PJRT GetAllocatorStats is not supported on TPU\n",
            "pass",
            "3 steps on the simulated device, 0 s",
        ),
        (
            "t.py:3: UserWarning: not implemented for TPU (Triggered internally at torch_tpu/csrc/a.cpp:1.)\n",
            "pass",
            "3 steps on the simulated device, 0 s",
        ),
    ],
)
def test_an_error_of_the_device_that_the_program_caught_is_no_pass(tmp_path, output, result, said):
    log = tmp_path / "run.log"
    log.write_text(output)
    judged = verdict(log=str(log))
    assert (judged.result, said in judged.reason) == (result, True)


def test_a_program_that_ends_before_the_steps_asked_for_is_told():
    assert "before the 8 that were asked for" in judge(record(), None, asked=8).reason
    assert "asked" not in judge(record(), None, asked=3).reason
    assert "asked" not in judge(record(outcome="stopped-at-steps"), None, asked=3).reason
