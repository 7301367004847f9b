"""Stage `parses`: what was changed has to be known to import, by itself or by a run, before it passes."""

from __future__ import annotations

import json

import pytest

from tests.agents.conftest import commit

MOVE = "def move(x):\n    import torch\n\n    return torch.ones(2, device='cuda') + x\n"


def parses(cli, repo, *more):
    """The stage's verdict and the exit code; the program runs on the CPU, where it ends well."""
    ended = cli("migrate", repo, "--entry", "python go.py", "--device", "cpu", "--json", *more)
    document = json.loads(ended.out)
    (verdict,) = [v for v in document["verdicts"] if v["stage"] == "parses"]
    return verdict, ended.code, document["headline"]


def project(tmp_path, **files):
    return commit(tmp_path / "repo", **{"go_py": "import part\n", **files})


def test_a_module_that_only_defines_things_is_imported(cli, tmp_path):
    verdict, code, _ = parses(cli, project(tmp_path, go_py="def go():\n    import part\n", part_py=MOVE))
    assert (verdict["result"], code) == ("pass", 0), verdict
    assert "1 changed file parses; known to import: 1 of 1" in verdict["reason"]


def test_a_run_shows_that_a_module_imports_which_does_more(cli, tmp_path):
    verdict, *_ = parses(cli, project(tmp_path, part_py=f"print('work')\n{MOVE}"))
    assert verdict["result"] == "pass", verdict


def test_what_would_have_to_be_run_and_was_not_is_not_known(cli, tmp_path):
    go = "def go():\n    import part\n"
    verdict, code, headline = parses(cli, project(tmp_path, go_py=go, part_py=f"print('work')\n{MOVE}"))
    assert (verdict["result"], code, headline) == ("not run", 0, "none"), verdict
    assert "importing part.py would run it" in verdict["reason"]


@pytest.mark.parametrize("good", [0, 1])
def test_a_missing_package_leaves_the_stage_open_also_where_other_modules_import(cli, tmp_path, good):
    lacking = f"import no_such_package_x\n{MOVE}"
    go = "def go():\n    import part, other\n"
    files = {"part_py": lacking, "other_py": MOVE if good else lacking}
    verdict, code, headline = parses(cli, project(tmp_path, go_py=go, **files))
    assert (verdict["result"], verdict["owner"], code, headline) == ("not run", "environment", 3, "none"), verdict
    assert f"{good} of 2" in verdict["reason"]
    assert "not installed: no_such_package_x" in verdict["reason"]


def test_an_import_that_outlasts_its_limit_is_not_a_pass(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("agents.stages.imports._SECONDS", 3.0)
    slow = "import time\n\n\nclass Slow:\n    time.sleep(60)\n\n\n"
    go = "def go():\n    import part\n"
    verdict, *_ = parses(cli, project(tmp_path, go_py=go, part_py=slow + MOVE))
    assert verdict["result"] == "not run", verdict
    assert "time limit" in verdict["reason"]


def test_a_dry_run_parses_and_claims_no_more(cli, tmp_path):
    verdict, *_ = parses(cli, project(tmp_path, part_py=MOVE), "--dry-run")
    assert verdict["result"] == "not run", verdict
