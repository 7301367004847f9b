"""Killed at any moment and resumed, a migration ends with the tree and branch of an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.agents.conftest import ROOT, TRAIN, commit, fingerprint, git

ENTRY = "python -c 'import time; time.sleep(1)'"
FILES = {f"part{number}_py": TRAIN for number in range(12)}


def start(home: Path, *arguments: str, wait: bool = False) -> subprocess.Popen[str]:
    env = {**os.environ, "TORCHTPU_HOME": str(home)}
    command = [sys.executable, "-m", "agents.cli", "migrate", *arguments, "--json"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if wait:
        process.communicate()
    return process


def undisturbed(tmp_path: Path) -> tuple[str, float]:
    """The tree of an undisturbed run, and how long it took."""
    repo = commit(tmp_path / "calm", **FILES)
    began = time.monotonic()
    out, _ = start(tmp_path / "calm-home", str(repo), "--entry", ENTRY).communicate()
    took = time.monotonic() - began
    branch = json.loads(out)["delivery"]["branch"]
    return git(repo, "rev-parse", f"{branch}^{{tree}}"), took


def kill_and_resume(folder: Path, moments: list[float]) -> tuple[str, dict[str, str], dict[str, str]]:
    repo, home = commit(folder / "repo", **FILES), folder / "home"
    before = fingerprint(repo)
    arguments = [str(repo), "--entry", ENTRY]
    for moment in moments:
        process = start(home, *arguments)
        time.sleep(moment)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert fingerprint(repo) == before
        cards = list(home.glob("runs/*/run.json"))
        if cards:
            arguments = ["--resume", cards[0].parent.name]
    out, err = start(home, *arguments).communicate()
    document = json.loads(out)
    assert "delivery" in document, (document, err)
    assert len(git(repo, "branch", "--list", "torchtpu/*").splitlines()) == 1
    git(repo, "fsck")
    return git(repo, "rev-parse", f"{document['delivery']['branch']}^{{tree}}"), before, fingerprint(repo)


def check(tmp_path: Path, times: int, seed: int) -> None:
    tree, took = undisturbed(tmp_path)
    draw = random.Random(seed)
    for number in range(times):
        moment = draw.uniform(0.1, 1.0) * took
        seen, before, after = kill_and_resume(tmp_path / f"kill-{number}", [moment])
        assert seen == tree, f"killed after {moment:.2f} s"
        assert before == after


@pytest.mark.timeout(900)
def test_three_kills(tmp_path):
    check(tmp_path, 3, seed=1)


@pytest.mark.timeout(900)
def test_killed_again_and_again(tmp_path):
    tree, took = undisturbed(tmp_path)
    seen, before, after = kill_and_resume(tmp_path / "often", [took * part for part in (0.5, 0.7, 0.9)])
    assert seen == tree
    assert before == after


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_kills(tmp_path):
    check(tmp_path, 10, seed=2)


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupt_says_how_to_go_on(tmp_path, times):
    repo, home = commit(tmp_path / "repo", train_py=TRAIN), tmp_path / "home"
    process = start(home, str(repo), "--entry", "python -c 'import time; time.sleep(300)'")
    wait_for(lambda: list(home.glob("runs/*/work/train.py")))
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "--resume" in json.loads(out)["remedy"]


def test_two_processes_do_not_work_on_one_run(tmp_path):
    repo, home = commit(tmp_path / "repo", train_py=TRAIN), tmp_path / "home"
    process = start(home, str(repo), "--entry", "python -c 'import time; time.sleep(300)'")
    (card,) = wait_for(lambda: list(home.glob("runs/*/run.json")))
    out, _ = start(home, "--resume", card.parent.name).communicate()
    process.kill()
    process.communicate()
    assert "being worked on by another process" in json.loads(out)["error"]


def wait_for(condition):
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")
