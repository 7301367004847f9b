"""Unlucky input and surroundings: a message with a documented exit code, and never a fault of ours."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from agents import runs, workspace
from tests.agents.conftest import ROOT, TRAIN, commit, fingerprint, git
from tools.errors import Exit, UserError

CHEAP = ("--entry", "python -c pass")


@pytest.mark.parametrize(
    "arguments",
    [
        ("migrate", ".", "--frobnicate"),
        ("migrate", ".", "--device", "abacus"),
        ("migrate", "one", "two"),
        ("migrate", ""),
        ("runs", "show"),
        ("runs", "show", "0" * 300),
        ("scan", ".", "."),
        ("run",),
        ("frobnicate",),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_json_document_too(cli, arguments):
    ended = cli(*arguments, "--json")
    assert ended.code == 2, ended
    assert json.loads(ended.out)["exit_code"] == 2
    assert not ended.err


def test_a_damaged_index_is_named(cli, repo, home):
    (repo / ".git/index").write_bytes(b"garbage")
    ended = cli("migrate", repo, *CHEAP, "--json")
    assert ended.code == 2, ended
    assert "index file smaller than expected" in json.loads(ended.out)["error"]
    assert not list((home / "runs").glob("*"))


def test_a_path_with_a_line_end_gets_its_branch(cli, tmp_path):
    repo = commit(tmp_path / 'two\nlines "\\', train_py=TRAIN)
    before = fingerprint(repo)
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert document["delivery"]["kind"] == "branch", document
    assert fingerprint(repo) == before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
def test_a_path_that_is_no_text_is_refused(cli, tmp_path):
    repo = commit(tmp_path / os.fsdecode(b"bad\xff"), train_py=TRAIN)
    ended = cli("migrate", repo, *CHEAP)
    assert (ended.code, "is not UTF-8 text" in ended.err) == (2, True), ended


def test_settings_of_a_repository_hold_for_scan_as_for_migrate(cli, repo):
    assert cli("scan", repo, "--json").code == 1
    (repo / "torchtpu.toml").write_text('ignore = ["TPU"]\n')
    assert cli("scan", repo, "--json").code == 0
    (repo / "torchtpu.toml").write_text("frob = 1\n")
    ended = cli("scan", repo)
    assert (ended.code, "frob" in ended.err) == (2, True), ended


def test_a_run_named_twice_is_deleted_once(cli, repo):
    run = json.loads(cli("migrate", repo, *CHEAP, "--dry-run", "--json").out)["run"]
    assert json.loads(cli("runs", "delete", run, run, "--json").out) == {"deleted": [run]}


def test_leaving_at_the_question_is_an_interrupt(cli, repo, monkeypatch):
    def leave(*_: object, **__: object) -> bool:
        raise typer.Abort

    monkeypatch.setattr(typer, "confirm", leave)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    ended = cli("migrate", repo, *CHEAP, "--approve")
    assert (ended.code, "--resume" in ended.err) == (4, True), ended


def test_a_message_that_is_no_text_is_still_reported(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = cli("run", "--json", "--device", "cpu", "--", "python", "-c", r"raise ValueError('bad \udcff')")
    assert ended.code == 1, ended
    assert json.loads(ended.out)["exception"]["message"] == "bad ?"


def test_a_module_that_ends_the_process_does_not_count_as_imported(cli, tmp_path):
    files = {
        "train_py": "def train():\n    import helper\n",
        "helper_py": "import boom\nimport torch\n\n\ndef make():\n    return torch.ones(1, device='cuda')\n",
        "boom_py": "import os\nos.abort()\n",
    }
    repo = commit(tmp_path / "repo", **files)
    document = json.loads(cli("migrate", repo, "--entry", "python train.py", "--json").out)
    (parses,) = [verdict for verdict in document["verdicts"] if verdict["stage"] == "parses"]
    assert (parses["result"], "import helper" in parses["reason"]) == ("fail", True), parses


def test_commands_in_the_users_git_configuration_do_not_run_at_the_hand_over(cli, repo, tmp_path):
    mark = tmp_path / "ran"
    other = commit(tmp_path / "other", train_py=TRAIN)
    (repo / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    git(repo, "config", "core.alternateRefsCommand", f"touch {mark}")
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert document["delivery"]["kind"] == "branch", document["delivery"]
    assert not mark.exists()
    git(repo, "branch", "-D", document["delivery"]["branch"])
    git(repo, "config", f"url.ext::sh -c 'touch {mark}' .insteadOf", str(tmp_path))
    git(repo, "config", "protocol.ext.allow", "always")
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert document["delivery"]["kind"] == "patch", document["delivery"]
    assert not mark.exists()


def _no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(cli, repo, home, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("agents.nodes.patch.write_whole", _no_room)
        ended = cli("migrate", repo, *CHEAP, "--json")
    document = json.loads(ended.out)
    assert (ended.code, "no room left" in document["error"]) == (3, True), document
    (run,) = runs.every()
    assert (run.id in document["remedy"], runs.status(run)) == (True, "interrupted")
    document = json.loads(cli("migrate", "--resume", run.id, "--json").out)
    assert document["delivery"]["kind"] == "branch"


def test_a_full_disk_leaves_no_half_written_files(cli, repo, home, monkeypatch):
    monkeypatch.setattr(os, "fsync", _no_room)
    assert cli("migrate", repo, *CHEAP).code == 3
    assert not list((home / "runs").glob("*"))


def test_a_full_disk_is_known_by_the_text_that_shutil_gathers(tmp_path, monkeypatch):
    text = f"[Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: 'a'"

    def gathered(*_: object, **__: object) -> None:
        raise shutil.Error([("a", "b", text)])

    monkeypatch.setattr(shutil, "copytree", gathered)
    with pytest.raises(UserError) as caught:
        workspace.build(tmp_path, None, Path(tmp_path / "work"), links=False, left_out=set())
    assert caught.value.exit_code is Exit.ENVIRONMENT


@pytest.mark.parametrize("name", ["run.json", "request.json", "state.sqlite", "report.json"])
def test_a_damaged_run_is_said_and_can_be_deleted(cli, repo, home, name):
    run = json.loads(cli("migrate", repo, *CHEAP, "--dry-run", "--json").out)["run"]
    folder = home / "runs" / run
    if name == "report.json":
        (folder / name).unlink()
    else:
        card = folder / "run.json"
        card.write_text(card.read_text().replace("finished", "interrupted"))
        for path in folder.glob(f"{name}*"):
            path.write_bytes(b"garbage" * 1000)
    ended = cli("migrate", "--resume", run, "--json")
    assert (ended.code, "damaged" in json.loads(ended.out)["error"]) == (2, True), ended
    assert cli("runs", "list").code == 0
    assert cli("runs", "delete", run).code == 0


def test_a_wish_to_stop_that_python_drops_is_heard_at_the_next_stage(cli, repo, monkeypatch):
    from agents.nodes import intake

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    inspect = intake.git.inspect

    def interrupted(path: Path) -> object:
        Finalized()
        return inspect(path)

    monkeypatch.setattr(intake.git, "inspect", interrupted)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    ended = cli("migrate", repo, *CHEAP)
    assert (ended.code, "--resume" in ended.err) == (4, True), ended


def test_signals_that_are_ignored_stay_ignored(cli):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    cli("--version")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_terminal_without_the_letters_of_a_path_gets_escapes(tmp_path, home):
    repo = commit(tmp_path / "ünï数", train_py=TRAIN)
    env = {**os.environ, "TORCHTPU_HOME": str(home), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "agents.cli", "migrate", str(repo), *CHEAP]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True)
    # Not 5: the last line names the path.
    assert done.returncode == 1, done
    assert b"next " in done.stdout


def test_scanning_in_several_processes_ends_quietly(cli, tmp_path):
    files = {f"part{number}_py": TRAIN for number in range(120)}
    ended = cli("scan", commit(tmp_path / "many", **files), "--jobs", 2, "--json")
    assert (ended.code, ended.err) == (1, ""), ended.err


def test_a_closed_standard_input_waits_for_approval(cli, repo, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    ended = cli("migrate", repo, *CHEAP, "--approve")
    assert (ended.code, "--resume" in ended.out) == (4, True), ended


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_before_the_first_status_says_how_to_go_on(cli, repo, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(runs.RunFolder, "update", _interrupt)
        ended = cli("migrate", repo, *CHEAP)
    (run,) = runs.every()
    assert (ended.code, f"--resume {run.id}" in ended.err) == (4, True), ended
    assert runs.status(run) == "interrupted"


def test_an_interrupt_while_the_run_is_made_leaves_nothing(cli, repo, home, monkeypatch):
    monkeypatch.setattr(runs, "write_whole", _interrupt)
    assert cli("migrate", repo, *CHEAP).code == 4
    assert not list((home / "runs").iterdir())


def test_a_signal_while_the_command_is_still_loading_is_an_interrupt():
    code = """
import os, signal, sys
class Wish:
    def find_spec(self, name, path=None, target=None):
        if name == "agents.cli":
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Wish())
import torchtpu_agent
torchtpu_agent.main()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "agents/command")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, "Interrupted" in done.stderr) == (4, True), done


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files do not depend on the locale")
def test_a_locale_without_the_letters_of_a_path_is_named(tmp_path, home):
    repo = commit(tmp_path / "ünï", train_py=TRAIN)
    plain = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LC_ALL": "C", "TORCHTPU_HOME": str(home)}
    command = [sys.executable, "-m", "agents.cli", "migrate", str(repo), *CHEAP]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **plain}, capture_output=True)
    assert (done.returncode, b"PYTHONUTF8=1" in done.stderr) == (3, True), done


def test_a_git_folder_that_git_refuses_is_said(cli, repo):
    (repo / ".git/HEAD").write_text("garbage\n")
    ended = cli("migrate", repo, *CHEAP, "--dry-run")
    assert f"git does not take {repo}/.git for a repository" in ended.out, ended


def test_the_remedy_for_a_partial_clone_makes_it_whole(cli, repo, tmp_path):
    git(repo, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{repo}", str(clone))
    git(clone, "config", "remote.origin.url", "/nonexistent")
    ended = cli("migrate", clone, *CHEAP, "--dry-run")
    assert ended.code == 2, ended
    git(clone, "config", "remote.origin.url", f"file://{repo}")
    remedy = ended.err[ended.err.index("git fetch") : ended.err.index(")", ended.err.index("git fetch"))]
    git(clone, *remedy.split()[1:])
    git(clone, "config", "remote.origin.url", "/nonexistent")
    assert cli("migrate", clone, *CHEAP, "--dry-run").code == 0


def test_one_of_a_kind_is_said_in_the_singular(cli, repo):
    ended = cli("migrate", repo, *CHEAP, "--select", "TPU104", "--dry-run")
    assert "1 file, 1 finding: 1 safe" in ended.out, ended
