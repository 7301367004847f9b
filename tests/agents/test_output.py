"""Output that cannot be written: a closed pipe, a full disk; the work is not lost and the exit code tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents import runs
from tests.agents.conftest import ROOT

CHEAP = ("--entry", "python -c pass")
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")


def start(home: Path, *arguments: object, **more: object) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "TORCHTPU_HOME": str(home)}
    command = [sys.executable, "-m", "agents.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, check=False, **more)


def into_closed_pipe(home: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    read, write = os.pipe()
    os.close(read)
    try:
        return start(home, *arguments, stdout=write)
    finally:
        os.close(write)


def test_a_closed_pipe_interrupts_a_migration_that_can_be_resumed(repo, home):
    ended = into_closed_pipe(home, "migrate", repo, *CHEAP)
    (run,) = runs.every()
    assert ended.returncode == 4, ended
    assert f"--resume {run.id}".encode() in ended.stderr
    assert runs.status(run) == "interrupted"


def test_a_closed_pipe_ends_a_listing_quietly(home):
    ended = into_closed_pipe(home, "rules", "list")
    assert (ended.returncode, ended.stderr) == (0, b""), ended


def test_a_closed_pipe_ends_a_program_as_an_interrupt(home, tmp_path):
    code = "while True: print('x' * 1000)"
    ended = into_closed_pipe(home, "run", "--device", "cpu", "--", "python", "-c", code)
    assert (ended.returncode, b"reader of the output" in ended.stderr) == (4, True), ended


@needs_full
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_of_the_output_is_not_taken_for_the_state_directory(repo, home, more):
    with FULL.open("w") as full:
        ended = start(home, "migrate", repo, *CHEAP, "--dry-run", *more, stdout=full)
    assert ended.returncode == 3, ended
    assert b"Standard output cannot be written" in ended.stderr
    assert b"Traceback" not in ended.stderr
    (run,) = runs.every()
    assert (runs.status(run) == "finished") == bool(more)
    assert (str(run.report) if more else f"--resume {run.id}").encode() in ended.stderr


@needs_full
def test_a_help_page_on_a_full_disk_is_no_traceback(home):
    with FULL.open("w") as full:
        ended = start(home, "--help", stdout=full)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (3, False), ended
