"""`torchtpu-agent run`: any program, its output passed on, its end explained."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_output_goes_through_and_the_end_is_explained(cli, here):
    ended = cli("run", "--", "python", "-c", "print('hello'); open('made', 'w')")
    assert ended.code == 0
    assert ended.out == "hello\n"
    assert "end      " in ended.err
    assert (here / "made").exists()


@pytest.mark.parametrize(
    ("code", "outcome", "exit_code"),
    [("raise SystemExit(7)", "exit-nonzero", 7), ("import os; os.abort()", "abort", None), ("1/0", "exception", 1)],
)
def test_a_bad_end_is_told_with_the_programs_own_code(cli, code, outcome, exit_code):
    ended = cli("run", "--json", "--", "python", "-c", code)
    document = json.loads(ended.out)
    assert ended.code == 1
    assert (document["outcome"], document["exit_code"]) == (outcome, exit_code)
    assert document["explanation"]


def test_limits_end_it(cli):
    loop = ["python", "-c", "import time\nwhile True: time.sleep(0.01)"]
    assert json.loads(cli("run", "--json", "--timeout", 1, "--", *loop).out)["outcome"] == "time-limit"
    grab = ["python", "-c", "x = [bytearray(2**20) for _ in range(4000)]; import time; time.sleep(60)"]
    assert json.loads(cli("run", "--json", "--memory", "300M", "--", *grab).out)["outcome"] == "memory-limit"


def test_options_of_the_program_are_its_own(cli):
    ended = cli("run", "python", "-c", "import sys; print(sys.argv[1:])", "--json", "--help", "-v")
    assert ended.out == "['--json', '--help', '-v']\n"


def test_the_log_is_kept(cli, here):
    cli("run", "--log", "out.log", "--", "python", "-c", "print('kept')")
    assert "kept" in (here / "out.log").read_text()


def test_what_cannot_be_started(cli):
    assert cli("run", "--", "no-such-program").code == 3
    assert cli("run").code == 2
    assert cli("run", "--device", "hardware", "--", "python", "-c", "pass").code == 3
    assert cli("run", "--device", "abacus", "--", "python", "-c", "pass").code == 2
