"""`diagnose` and `knowledge` from the command line, without a device."""

from __future__ import annotations

import io
import json

import pytest

from agents import runs
from agents.knowledge_store import keep, refuted
from agents.state import Request
from tools.knowledge import entries
from tools.probes import ProbeRecord, Standing, judge
from tools.run import RunOutput

ERROR = "AssertionError: Torch not compiled with CUDA enabled\n"


def test_a_log_is_explained_with_the_patch_of_the_repository(cli, repo, tmp_path):
    log = tmp_path / "train.log"
    log.write_text(ERROR)
    ended = cli("diagnose", log, "--repo", repo)
    assert ended.code == 1
    assert "cuda-not-compiled" in ended.out and "+model = torch.nn.Linear(4, 2).to(" in ended.out
    document = json.loads(cli("diagnose", log, "--json").out)
    assert document["causes"][0]["entry"] == "cuda-not-compiled"
    assert document["causes"][0]["confidence"] == "certain"
    assert document["causes"][0]["lines"] == [ERROR.strip()]


def test_standard_input_is_explained(cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(ERROR))
    assert "cuda-not-compiled" in cli("diagnose", "-").out


def test_a_run_is_explained_by_its_last_attempt(cli):
    folder = runs.create(Request(source="x", created="2026-01-01T00:00:00+00:00"), "x")
    early = RunOutput(outcome="exception", explanation="a", exception={"type": "KeyError", "message": "'a'"})
    late = RunOutput(outcome="exception", explanation="b", exception={"type": "AssertionError", "message": ERROR[16:]})
    (folder.path / "run-1-1.json").write_text(early.model_dump_json())
    (folder.path / "run-2-1.json").write_text(late.model_dump_json())
    document = json.loads(cli("diagnose", folder.id, "--json").out)
    assert document["origin"] == f"run {folder.id}, program 1"
    assert document["causes"][0]["entry"] == "cuda-not-compiled"


def test_a_command_is_run_and_explained(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fails.py").write_text("import apex\n")
    ended = cli("diagnose", "--device", "cpu", "--json", "--", "python", "fails.py")
    assert ended.code == 1
    assert json.loads(ended.out)["causes"][0]["entry"] == "apex-missing"
    ended = cli("diagnose", "--device", "cpu", "--", "python", "-c", "pass")
    assert ended.code == 0 and "ended well" in ended.out


@pytest.mark.parametrize(
    ("words", "said"), [(("nosuch.log",), "There is no log, run or program"), (("-",), "nothing to explain")]
)
def test_what_is_nothing_is_refused(cli, monkeypatch, words, said):
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    ended = cli("diagnose", *words)
    assert ended.code == 2 and said in ended.err


def test_entries_are_listed_shown_and_searched(cli):
    assert len(json.loads(cli("knowledge", "list", "--json").out)) == len(entries())
    assert "remedy" in cli("knowledge", "show", "scaler-on-tpu").out
    missing = cli("knowledge", "show", "gradscaler")
    assert missing.code == 2 and "scaler-on-tpu" in missing.err
    hits = json.loads(cli("knowledge", "search", "what", "about", "GradScaler", "--json").out)["hits"]
    assert "scaler-on-tpu" in [hit["id"] for hit in hits]
    assert cli("knowledge", "search", "qqqqq").code == 1


def test_a_probe_that_does_not_fail_any_more_marks_its_entry(cli):
    entry = next(entry for entry in entries() if entry.id == "apex-missing")
    failed = RunOutput(
        outcome="exception",
        explanation="",
        exception={"type": "ModuleNotFoundError", "message": "No module named 'apex'"},
    )
    assert judge(entry, failed)[0] is Standing.HOLDS
    assert judge(entry, RunOutput(outcome="completed", explanation=""))[0] is Standing.NO_LONGER
    assert judge(entry, RunOutput(outcome="not-started", explanation=""))[0] is Standing.NOT_RUN
    keep([ProbeRecord(entry="apex-missing", standing=Standing.NO_LONGER, said="it ended well")])
    assert refuted() == ["apex-missing"]
    assert "no longer holds" in cli("knowledge", "show", "apex-missing").out


def test_verify_runs_a_probe_and_keeps_what_it_came_to(cli):
    ended = cli("knowledge", "verify", "apex-missing", "--device", "cpu", "--json")
    record = json.loads(ended.out)["probes"][0]
    assert (ended.code, record["standing"]) == (0, "holds")
    listed = {each["id"]: each["standing"] for each in json.loads(cli("knowledge", "list", "--json").out)}
    assert listed["apex-missing"] == "holds"
