"""The suite of migrations, on a task of its own in a folder that the environment names."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from evals import task as tasks
from evals.candidates.answer import Answer, Limits
from evals.scorers.case import Runs
from evals.scorers.judge import Score, judge
from evals.suites import migrate
from evals.suites.log import Log

PROGRAM = """\
import torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 8).unsqueeze(1)
model = torch.nn.Linear(1, 1).cuda()
x = x.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = ((model(x) - 2 * x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.5f}")
"""
BY_HAND = PROGRAM.replace(
    "torch.manual_seed(0)\n",
    "torch.manual_seed(0)\n"
    'device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")\n',
).replace(".cuda()", ".to(device)")
ON_THE_CPU = PROGRAM.replace(".cuda()", ".cpu()")
TASK = """\
name = "line"
title = "A line"
difficulty = "easy"
entries = ["python fit.py"]
licence = "Apache-2.0"
uses = [".cuda()"]

[baseline]
fails_without_cuda = "CUDA"

[checks]
steps = 3
numbers = 3
"""
PAIRS = [("line", "unchanged"), ("line", "reference")]


class Suite(NamedTuple):
    place: Path
    log: Log
    scores: list[Score]


def limits() -> Limits:
    return Limits(python=Path(sys.executable), timeout=120)


def write_task(root: Path) -> None:
    folder = root / "line"
    (folder / "repo").mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "repo" / "fit.py").write_text(PROGRAM)
    lines = (text.splitlines(keepends=True) for text in (PROGRAM, BY_HAND))
    patch = "".join(difflib.unified_diff(*lines, "a/fit.py", "b/fit.py"))
    (folder / "reference.patch").write_text(patch)


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("private")
    write_task(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tasks.PRIVATE, str(root))
        # Whoever commits meanwhile would have every score made again.
        patch.setattr(migrate.results, "revision", lambda: "abc")
        yield root


@pytest.fixture(scope="module")
def suite(private: Path, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    place = tmp_path_factory.mktemp("out")
    log = Log(place / "log.jsonl")
    log.path.write_text('{"task": "line", "candidate": "unch')
    return Suite(place, log, migrate.run(PAIRS, log, place, limits(), 1, lambda said: None))


def test_a_private_task_stands_beside_the_others(private: Path) -> None:
    assert {"line", "chargpt"} <= set(tasks.names())
    assert tasks.load("line").folder == private / "line"


def test_the_unmodified_source_fails_on_the_device(suite: Suite) -> None:
    unchanged = suite.scores[0]
    assert unchanged.kind == "fail"
    assert list(unchanged.checks) == ["device"]


def test_the_migration_by_hand_passes(suite: Suite) -> None:
    reference = suite.scores[1]
    assert (reference.kind, reference.why) == ("pass", "")
    assert reference.checks["device"] == ("pass", "")
    assert reference.checks["numbers"] == ("pass", "")
    assert reference.changed == reference.reference == 5
    assert migrate.validated(suite.scores) == []


def test_a_line_that_a_kill_cut_off_is_passed_over(suite: Suite) -> None:
    assert [(score["task"], score["candidate"]) for score in suite.log] == PAIRS
    assert suite.log.path.read_text().count("\n") == 3


def test_a_second_call_runs_nothing_again(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "one", lambda *given: pytest.fail("it ran again"))
    again = migrate.run(PAIRS, suite.log, suite.place, limits(), 1, lambda said: None)
    assert again == suite.scores


def test_another_revision_of_the_task_is_run(suite: Suite, private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(migrate, "one", lambda pair, *rest: ran.append(pair) or suite.scores[0].model_copy())
    note = private / "line" / "notes.txt"
    note.write_text("more")
    migrate.run(PAIRS[:1], Log(suite.place / "copy.jsonl"), suite.place, limits(), 1, lambda said: None)
    other = Log(suite.place / "other.jsonl")
    other.path.write_text(suite.log.path.read_text())
    migrate.run(PAIRS[:1], other, suite.place, limits(), 1, lambda said: None)
    note.unlink()
    assert ran == [PAIRS[0], PAIRS[0]]


def test_training_on_the_cpu_fails_and_makes_claims_vain(suite: Suite, private: Path, tmp_path: Path) -> None:
    task, originals = tasks.load("line"), Runs()
    tree = task.checkout(tmp_path / "tree")
    (tree / "fit.py").write_text(ON_THE_CPU)
    answer = Answer(tree=tree, claims=["runs", "trains"])
    score = judge(task, "someone", answer, task.checkout(tmp_path / "original"), tmp_path, limits(), originals)
    assert score.checks["device"] == ("fail", "0 of 3 optimizer steps on the TPU, 3 are due")
    assert score.checks["numbers"][0] == "pass"
    assert score.over_claims == ["runs", "trains"]
    assert score.under_claims == ["preserves"]
    assert not score.reached("trains")


def test_a_task_whose_original_passes_is_a_fault() -> None:
    score = Score(
        task="line", candidate="unchanged", digest="", difficulty="easy", kind="pass", checks={"device": ("pass", "")}
    )
    assert len(migrate.validated([score])) == 1
    assert len(migrate.validated([score.model_copy(update={"candidate": "reference", "kind": "fail"})])) == 1


def test_published_scores_take_the_place_of_older_ones(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [{**suite.scores[1].model_dump(mode="json"), "revision": "old"}, {"task": "gone", "candidate": "ours"}]
    monkeypatch.setattr(migrate.results, "read", lambda name: old)
    published = migrate.published(suite.scores)
    assert [(one["candidate"], one["revision"]) for one in published] == [("reference", "abc"), ("unchanged", "abc")]
