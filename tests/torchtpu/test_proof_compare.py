"""A small program is recorded, and again with one thing changed: what the comparison says of each change."""

from __future__ import annotations

import pytest

from tests.torchtpu.launching import run
from torchtpu.launch import Outcome
from torchtpu.proof.judge import compare
from torchtpu.proof.ratio import FLOAT32
from torchtpu.proof.recording import read_folder
from torchtpu.proof.spec import Proof

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.body = nn.Sequential(nn.Linear(16, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 16))
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.body(self.table(x)))


net = Net()
model = nn.DataParallel(net)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for step in range(4):
    x = torch.randint(0, 20, (32,))
    loss = criterion(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def record(folder, source, **options):
    folder.mkdir()
    proof = Proof(record=folder / "record", record_steps=2, **options)
    result = run(folder, source, proof=proof, env={"OMP_NUM_THREADS": "1"})
    assert result.outcome in (Outcome.COMPLETED, Outcome.STOPPED_AT_STEPS), result.explain()
    return read_folder(folder / "record")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "reference": record(folder / "reference", PROGRAM),
        "jitter": record(folder / "jitter", PROGRAM, jitter=1),
    }


def test_a_recording_holds_what_was_computed(runs):
    seen = runs["reference"]["0"]
    assert seen.num_steps == 4
    assert [loss.number for loss in seen.losses] == [1, 2, 3, 4]
    assert list(seen.modules)[:3] == ["Net", "Net.table", "Net.body"]
    assert seen.modules["Net.body.1"]["called"]["file"] == "prog.py"
    assert {call.step for call in seen.calls} == {1, 2}
    assert seen.snapshots[0].ties == [["Net.table.weight", "Net.head.weight"]]
    assert {"Net.body.1.running_mean", "Net.body.1.running_var"} <= set(seen.snapshots[0].buffers)
    assert set(seen.steps[0].gradients) == set(seen.snapshots[0].parameters)
    assert not seen.steps[3].gradients
    assert seen.end is not None
    assert seen.end["broken"] is None


def test_rounding_alone_is_no_difference(runs):
    found = compare(runs["reference"], [runs["jitter"]], runs["jitter"], scale=FLOAT32)
    assert found.problems == []
    assert all(one.compared and one.identical < one.compared for one in found.figures.values())


# The place is the user's line that calls the module (17 for all of Net's, 26 for Net itself), that makes the optimizer
# (22), goes backward (28) or steps (29, one more with a line added before it).
CHANGES = {
    "eps": ("nn.BatchNorm1d(24)", "nn.BatchNorm1d(24, eps=1e-2)", "forward", "Net.body.1", "prog.py:17"),
    "eval": ("for step", "net.body[1].eval()\nfor step", "forward", "mode eval", ""),
    "detached": (
        "self.table(x)))",
        "self.table(x).detach()))",
        "gradients",
        "no gradient reaches the output of Net.table",
        "prog.py:17",
    ),
    "clipped": (
        "    optimizer.step()",
        "    nn.utils.clip_grad_norm_(net.parameters(), 0.1)\n    optimizer.step()",
        "gradients",
        "between backward at prog.py:28 and the optimizer's step",
        "prog.py:30",
    ),
    "untied": ("self.head.weight = self.table.weight", "pass", "trains", "one parameter in the original", ""),
    "rate": ("lr=1e-2", "lr=2e-2", "trains", "lr of parameter group 0 is 0.02", "prog.py:22"),
    "frozen": ("for step", "net.body[4].bias.requires_grad_(False)\nfor step", "trains", "Net.body.4.bias", ""),
    "outside": ("net.parameters()", "list(net.parameters())[:2]", "trains", "optimizer's parameters", ""),
    "batches": ("(32,)", "(31,)", "forward", "is not the same batch", "prog.py:26"),
    "seed": ("manual_seed(0)", "manual_seed(1)", "forward", "differ before the first step", ""),
    "no step": ("    optimizer.step()\n", "", "trains", "no optimizer step", ""),
    "statistics": ("nn.BatchNorm1d(24)", "nn.BatchNorm1d(24, momentum=0.0)", "trains", "never changes", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_where_it_is(runs, tmp_path, name):
    find, replace, stage, said, place = CHANGES[name]
    assert find in PROGRAM
    changed = record(tmp_path / "changed", PROGRAM.replace(find, replace))
    found = compare(runs["reference"], [runs["jitter"]], changed, scale=FLOAT32)
    problems = found.of(stage)
    assert any(said in problem.message for problem in problems), found.problems
    assert any(place in f"{problem.place} {problem.message}" for problem in problems), problems


@pytest.mark.slow
def test_what_proves_nothing_is_a_problem(tmp_path):
    dead = PROGRAM.replace("return self.head(", "return 0 * self.head(")
    seen = record(tmp_path / "dead", dead)
    found = compare(seen, [], seen, scale=FLOAT32)
    assert {problem.kind for problem in found.problems} == {"degenerate"}
    assert {problem.stage for problem in found.problems} >= {"forward", "gradients"}


@pytest.mark.slow
def test_a_program_that_lost_its_steps_is_ended(tmp_path):
    endless = PROGRAM.replace("    optimizer.step()\n", "").replace("range(4)", "range(10**9)")
    seen = record(tmp_path / "endless", endless, most_backwards=6)["0"]
    assert seen.end is not None
    assert (seen.end["steps"], len(seen.losses)) == (0, 7)
