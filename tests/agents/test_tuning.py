"""Tuning keeps what helps and is verified, says why it drops the rest, and goes on where it was cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.cli.tune import _seconds
from agents.tuning.check import losses_agree
from agents.tuning.state import speedup
from agents.tuning.text import described
from agents.tuning.trial import _no_gain
from tools.errors import UserError
from tools.estimate import Estimate

_GIB = 2.0**30


def _estimate(seconds: float | None = 1e-3, outcome: str = "ok", **more: Any) -> Estimate:
    return Estimate(
        mode="launched", target="v6e-1", outcome=outcome, seconds=seconds, low=seconds, high=seconds, **more
    )


def _too_large(need: str) -> Estimate:
    said = f"the total memory required for HLO temporaries ({need}) exceeds available HBM (15.75G)"
    return _estimate(None, "out-of-memory", message=said)


def test_losses_of_the_same_training_agree() -> None:
    before = [3.5, 3.4, 3.3]
    assert losses_agree(before, [3.501, 3.402, 3.299], "rounding").passed
    assert not losses_agree(before, [3.5, 3.4, 3.4], "rounding").passed
    assert not losses_agree(before, [3.5, 3.4], "nothing").passed
    assert not losses_agree(before, [3.5, float("nan"), 3.3], "nothing").passed


def test_no_losses_prove_nothing() -> None:
    assert not losses_agree([], [], "nothing").passed


def test_another_batch_has_to_begin_the_same() -> None:
    assert losses_agree([3.5, 3.4], [3.6, 3.2, 3.0], "batch").passed
    assert not losses_agree([3.5, 3.4], [5.0, 3.4], "batch").passed


def test_gain_is_by_sample_where_the_batch_is_known() -> None:
    before, after = _estimate(2e-3, samples=8), _estimate(3e-3, samples=16)
    assert speedup(before, after) == pytest.approx(4 / 3)
    assert speedup(_estimate(2e-3), _estimate(1e-3)) == pytest.approx(2)
    assert speedup(before, _too_large("20.0G")) is None


def test_what_gains_too_little_is_dropped() -> None:
    assert _no_gain(_estimate(1e-3), _estimate(0.5e-3)) == ""
    assert "no gain" in _no_gain(_estimate(1e-3), _estimate(0.995e-3))
    assert "could not be compiled" in _no_gain(_estimate(1e-3), _estimate(0.5e-3, left_out=3))
    assert "out-of-memory" in _no_gain(_estimate(1e-3), _too_large("20.0G"))


def test_where_nothing_fits_what_needs_less_is_a_step() -> None:
    assert _no_gain(_too_large("20.0G"), _too_large("18.0G")) == ""
    assert _no_gain(_too_large("20.0G"), _too_large("20.0G")) != ""
    assert _no_gain(_too_large("20.0G"), _estimate(1e-3)) == ""


def test_estimate_says_that_it_is_one() -> None:
    said = described(_estimate(1e-3, samples=4, launches=12, left_out=2, peak=_GIB, limit=32 * _GIB))
    assert "estimated" in said and "12 programs launched" in said and "250.0 us a sample" in said
    assert "2 are not in the time" in said


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("30m", 1800), ("1.5h", 5400)])
def test_budget(text: str, seconds: float) -> None:
    assert _seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-3m", "0h"])
def test_no_budget(text: str) -> None:
    with pytest.raises(UserError):
        _seconds(text)


_PROGRAM = """import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
generator = torch.Generator().manual_seed(1)
for step in range(4):
    inputs = torch.randn(32, 16, generator=generator).cuda()
    targets = torch.randint(8, (32,), generator=generator).cuda()
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_whole_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA program comes back as a branch with the changes that helped; the checkout is as it was."""
    from agents.cli import main
    from evals.task import commit_all
    from tools.git import run_git

    monkeypatch.setenv("TORCHTPU_HOME", str(tmp_path / "home"))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(_PROGRAM)
    head = commit_all(folder, "program")
    words = ["tune", str(folder), "-e", "python train.py", "-t", "v6e-1", "--quick", "--verify-steps", "3"]
    assert main([*words, "--only", "compile-module,larger-batch"]) == 0
    (run,) = (tmp_path / "home" / "runs").iterdir()
    report = json.loads((run / "report.json").read_text())
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert [trial["transform"] for trial in trials] == ["compile-module", "larger-batch"]
    assert trials[0]["verdict"] == "kept" and trials[1]["verdict"] == "advice"
    assert report["best"]["launches"] < report["plain"]["launches"] and report["speedup"] > 1
    assert run_git(folder, "rev-parse", "HEAD").decode().strip() == head
    assert run_git(folder, "status", "--porcelain").decode() == ""
    branch = f"torchtpu/tune-{run.name}"
    assert "before:" in run_git(folder, "log", "-1", "--format=%B", branch).decode()
    assert "model.compile()" in run_git(folder, "show", f"{branch}:train.py").decode()
