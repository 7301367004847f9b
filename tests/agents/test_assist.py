"""In a migration the model gets what rules left; its change passes the same verification or is dropped whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.assist import reason_to_drop
from agents.stages.common import failed, not_run, passed
from evals.scripted_model import Call, ScriptedModel, Turn
from tests.agents.chatting import edit
from tests.agents.conftest import commit, git

BUGGY = 'print("done".uper())\n'
MODEL = "import torch\n\n\ndef make():\n    return torch.nn.Linear(4, 2).cuda()\n"
FIX = edit("train.py", ".uper()", ".upper()", "The method is called upper")
RUN = Turn(calls=[Call(name="run_program")])


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(
        tmp_path / "repo", train_py=BUGGY, model_py=MODEL, tests__test_it_py="def test_it():\n    assert 1 + 1 == 2\n"
    )


def migrated(cli, repo: Path, script: list[Turn], monkeypatch, *more: str) -> tuple[dict, ScriptedModel]:
    with ScriptedModel(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        arguments = ("--entry", "python train.py", "--device", "cpu", "--no-verify", "--json", "--model", "m", *more)
        ended = cli("migrate", repo, *arguments)
    return json.loads(ended.out), server


def test_a_failure_no_rule_fixes_is_fixed_and_kept(cli, repo, monkeypatch):
    document, server = migrated(cli, repo, [Turn(calls=[FIX]), RUN, Turn(say="It was a typo.")], monkeypatch)
    made = document["assistance"]
    assert made["kept"] and not made["dropped"]
    assert [run["outcome"] for run in document["runs"]][-1] == "completed"
    subjects = git(repo, "log", "--format=%s", f"main..{document['delivery']['branch']}").splitlines()
    assert subjects[0] == "The method is called upper" and any(s.startswith("TPU104") for s in subjects)
    told = server.requests[0]["messages"][1]["content"]
    assert "has no attribute 'uper'" in told
    report = Path(document["runs"][0]["log"]).parent / "report.md"
    assert "its own account, which is no evidence: It was a typo." in report.read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit("train.py", "print(", "1 / 0\nprint(", "make it better"), "with it, runs fails"),
        (edit("train.py", 'print("done".uper())', "try:\n    f()\nexcept Exception:\n    pass"), ""),
        (edit("tests/test_it.py", "assert 1 + 1 == 2", "pass"), ""),
        (edit("../x.py", "", "x"), ""),
    ],
)  # fmt: skip
def test_what_does_not_pass_is_dropped_and_what_cheats_is_never_made(cli, repo, monkeypatch, change, said):
    document, _ = migrated(cli, repo, [Turn(calls=[change]), Turn(say="All stages pass now!")], monkeypatch)
    made = document["assistance"]
    assert not made["kept"]
    assert made["dropped"] == bool(said) and said in made["reason"]
    subjects = git(repo, "log", "--format=%s", f"main..{document['delivery']['branch']}").splitlines()
    assert all(subject.startswith("TPU") for subject in subjects)
    assert document["exit_code"] == 1


def test_a_model_that_is_not_there_costs_the_migration_nothing(cli, repo, monkeypatch):
    document, _ = migrated(cli, repo, [Turn(status=401, say="no")], monkeypatch)
    assert document["assistance"]["stop"] == "the model could not be reached"
    assert document["delivery"]["kind"] == "branch"


def test_nobody_is_asked_where_nothing_is_left(cli, tmp_path, monkeypatch):
    repo = commit(tmp_path / "fine", train_py=BUGGY.replace("uper", "upper"))
    document, server = migrated(cli, repo, [], monkeypatch)
    assert document["assistance"]["stop"] == "nothing was left" and server.requests == []


def test_a_trajectory_is_played_again_without_a_server(cli, repo, monkeypatch):
    document, _ = migrated(cli, repo, [Turn(calls=[FIX]), Turn(say="Done.")], monkeypatch)
    trajectory = document["assistance"]["trajectory"]
    monkeypatch.delenv("OPENAI_BASE_URL")
    arguments = ("--entry", "python train.py", "--device", "cpu", "--no-verify", "--json", "--replay", trajectory)
    again = json.loads(cli("migrate", repo, *arguments).out)
    assert again["assistance"]["kept"]
    trees = {git(repo, "rev-parse", f"{d['delivery']['branch']}^{{tree}}") for d in (document, again)}
    assert len(trees) == 1


def test_a_model_without_key_and_server_is_refused_at_once(cli, repo, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ended = cli("migrate", repo, "--model", "m")
    assert ended.code == 2 and "OPENAI_BASE_URL" in ended.err


def test_a_repository_cannot_turn_a_model_on(cli, repo, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("TORCHTPU_MODEL", raising=False)
    (repo / "torchtpu.toml").write_text('[model]\nname = "theirs"\n')
    from agents.llm.settings import configured

    assert configured(None, repo) is None
    chosen = configured("auto", repo)
    assert chosen is not None and chosen.model == "theirs"
    (repo / "torchtpu.toml").write_text("[model]\ncalls = 100000\nseconds = 5\n")
    chosen = configured("mine", repo)
    assert chosen is not None and (chosen.budget.calls, chosen.budget.seconds) == (40, 5)


def test_a_stage_that_failed_before_is_not_held_against_the_change():
    before = [failed("runs", "x"), failed("gradients", "y"), not_run("forward", "z")]
    assert reason_to_drop(before, [passed("runs", ""), failed("gradients", "y")]) == ""
    assert "forward fails" in reason_to_drop(before, [passed("runs", ""), failed("forward", "off")])
    assert "runs fails" in reason_to_drop(before, [failed("runs", "x")])
