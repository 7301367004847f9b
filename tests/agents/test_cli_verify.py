"""`torchtpu-agent verify` from the shell: a process of its own, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.agents.conftest import ROOT


def verify(tmp_path, *arguments):
    env = {**os.environ, "TORCHTPU_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "agents.cli", "verify", *map(str, arguments)]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)


def test_an_original_that_does_not_run_leaves_every_stage_open(tmp_path):
    for name in ("original", "migrated"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text("raise SystemExit('no data here')\n")
    ended = verify(tmp_path, tmp_path / "original", tmp_path / "migrated", "--entry", "python train.py", "--json")
    assert ended.returncode == 0, ended.stderr
    stages = json.loads(ended.stdout)["stages"]
    assert [verdict["stage"] for verdict in stages] == ["forward", "gradients", "trains", "preserves"]
    assert {verdict["result"] for verdict in stages} == {"not run"}
    assert all("no data here" in verdict["reason"] for verdict in stages)


def test_the_entry_runs_in_the_folder_that_scope_names(tmp_path):
    for name in ("original", "migrated"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "data.txt").write_text("from above")
        (tmp_path / name / "inner" / "train.py").write_text("raise SystemExit(open('../data.txt').read())\n")
    both = [tmp_path / "original", tmp_path / "migrated"]
    ended = verify(tmp_path, *both, "--scope", "inner", "--entry", "python train.py", "--json")
    assert ended.returncode == 0, ended.stderr
    assert all("from above" in verdict["reason"] for verdict in json.loads(ended.stdout)["stages"])
    for outside in ("absent", "../original", "/"):
        ended = verify(tmp_path, *both, "--scope", outside, "--entry", "python train.py")
        assert ended.returncode == 2
        assert f"There is no folder {outside} inside" in ended.stderr


def test_a_folder_that_is_not_there_is_bad_usage(tmp_path):
    ended = verify(tmp_path, tmp_path, tmp_path / "absent", "--entry", "python train.py")
    assert ended.returncode == 2
    assert "There is no folder" in ended.stderr
