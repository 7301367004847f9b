"""The store of runs: listed, shown, deleted, moved by TORCHTPU_HOME."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from agents.report.model import schema, schema_text
from tests.agents.conftest import git

CHEAP = ("--entry", "python -c pass", "--dry-run")


def test_a_run_is_listed_shown_and_deleted(cli, repo, home):
    run = json.loads(cli("migrate", repo, *CHEAP, "--json").out)["run"]
    (card,) = json.loads(cli("runs", "list", "--json").out)
    assert (card["id"], card["status"], card["headline"]) == (run, "finished", "none")
    assert run in cli("runs", "list").out
    assert "## Stages" in cli("runs", "show", run).out
    jsonschema.validate(json.loads(cli("runs", "show", run, "--json").out), schema())
    assert cli("runs", "delete", run).code == 0
    assert not (home / "runs" / run).exists()
    assert cli("runs", "show", run).code == 2


def test_a_branch_outlives_its_run(cli, repo):
    document = json.loads(cli("migrate", repo, "--entry", "python -c pass", "--json").out)
    cli("runs", "delete", document["run"])
    assert git(repo, "rev-parse", document["delivery"]["branch"]) == document["delivery"]["tip"]
    git(repo, "fsck", "--full")


def test_an_empty_store_is_said(cli, home):
    assert str(home) in cli("runs", "list").err


def test_a_state_directory_that_cannot_be_made_is_a_message(cli, repo, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHTPU_HOME", str(tmp_path / "file/below"))
    ended = cli("migrate", repo, *CHEAP)
    assert ended.code == 3
    assert "TORCHTPU_HOME" in ended.err


def test_the_published_schema_is_the_one_of_the_report(cli):
    published = Path(__file__).parents[2] / "docs/schema/report-v1.json"
    assert published.read_text() == schema_text(), "write it with: torchtpu-agent runs schema"
    assert cli("runs", "schema").out == schema_text()


def test_rules_are_listed_and_shown(cli):
    rules = json.loads(cli("rules", "list", "--json").out)
    assert all(set(rule) == {"id", "name", "family", "grade", "message"} for rule in rules)
    ended = cli("rules", "show", rules[0]["id"].lower())
    assert rules[0]["message"] in ended.out
    assert cli("rules", "show", "TPU000").code == 2


def test_scan_finds_and_ends_with_one(cli, repo, tmp_path):
    ended = cli("scan", repo)
    assert ended.code == 1
    assert "train.py:3" in ended.out
    assert cli("scan", repo, "--exit-zero").code == 0
    out = tmp_path / "f.sarif"
    cli("scan", repo, "--format", "sarif", "--output", out)
    assert json.loads(out.read_text())["version"] == "2.1.0"
    assert cli("scan", repo, "--select", "NOPE").code == 2
    assert cli("scan", repo / "absent").code == 2


def test_help_and_scan_import_neither_torch_nor_langgraph(repo):
    import subprocess
    import sys

    code = (
        "import sys; from agents.cli import main; main(['scan', sys.argv[1], '--exit-zero']); main(['--help']);"
        "print([m for m in ('torch', 'langgraph', 'jax', 'numpy') if m in sys.modules], file=sys.stderr)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(repo)], cwd=root, capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")
