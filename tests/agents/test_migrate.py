"""The migrate command from end to end, without a device: branch, patch, dry run, approval, second run."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import jsonschema
import pytest

from agents.report.model import schema
from tests.agents.conftest import TRAIN, commit, fingerprint, git

CHEAP = ("--entry", "python -c pass")


def migrated(cli, source, *more):
    ended = cli("migrate", source, *CHEAP, "--json", *more)
    return json.loads(ended.out)


def test_a_branch_with_one_commit_per_rule_and_nothing_else(cli, repo):
    before = fingerprint(repo)
    document = migrated(cli, repo)
    branch = document["delivery"]["branch"]
    subjects = git(repo, "log", "--format=%s|%an", f"main..{branch}").splitlines()
    assert [line.split(":")[0] for line in reversed(subjects)] == [c["rule"] for c in document["commits"]]
    assert all(line.endswith("|torchtpu-agent") for line in subjects)
    assert fingerprint(repo) == before


def test_the_report_follows_its_published_schema(cli, repo):
    document = migrated(cli, repo)
    jsonschema.validate(document, schema())
    assert document["headline"] == "none"
    assert [verdict["stage"] for verdict in document["verdicts"]][:3] == ["parses", "clean", "runs"]
    assert {v["result"] for v in document["verdicts"][3:]} == {"not run"}
    assert document["exit_code"] == 1


def test_a_program_that_never_touches_the_device_is_a_fail_and_says_so(cli, repo):
    ended = cli("migrate", repo, *CHEAP)
    assert ended.code == 1
    assert "nothing of it ran on the TPU" in ended.out


def test_migrating_the_result_changes_no_byte(cli, repo):
    document = migrated(cli, repo)
    git(repo, "merge", "-q", document["delivery"]["branch"])
    branches = git(repo, "branch", "--list")
    ended = cli("migrate", repo, *CHEAP)
    assert "nothing to change" in ended.out
    assert git(repo, "branch", "--list") == branches


def test_the_same_repository_gives_the_same_tree(cli, repo):
    first, second = (migrated(cli, repo) for _ in range(2))
    trees = {git(repo, "rev-parse", f"{d['delivery']['branch']}^{{tree}}") for d in (first, second)}
    assert len(trees) == 1


def test_out_writes_a_patch_that_applies_and_makes_no_branch(cli, repo, tmp_path):
    out = tmp_path / "tpu.patch"
    document = migrated(cli, repo, "--out", out)
    assert document["delivery"]["kind"] == "patch"
    assert git(repo, "branch", "--list", "torchtpu/*") == ""
    subprocess.run(["git", "apply", "--check", out], cwd=repo, check=True)
    ended = cli("migrate", repo, *CHEAP, "--out", out)
    assert ended.code == 2
    assert "exists" in ended.err


def test_a_patch_of_a_subdirectory_applies_as_the_report_says(cli, tmp_path):
    repo = commit(tmp_path / "repo", sub__train_py=TRAIN)
    out = tmp_path / "tpu.patch"
    document = migrated(cli, repo / "sub", "--out", out)
    subprocess.run(document["delivery"]["merge"], shell=True, check=True)
    assert "accelerator" in (repo / "sub/train.py").read_text()


def test_a_dry_run_makes_no_branch_and_runs_nothing(cli, repo):
    document = migrated(cli, repo, "--dry-run")
    assert document["runs"] == []
    assert document["delivery"]["kind"] == "nothing"
    assert "+" in Path(document["delivery"]["patch"]).read_text()
    assert git(repo, "branch", "--list", "torchtpu/*") == ""


def test_a_plan_waits_for_approval_and_goes_on_with_yes(cli, repo):
    ended = cli("migrate", repo, *CHEAP, "--approve", "--json")
    waiting = json.loads(ended.out)
    assert ended.code == 4
    assert waiting["status"] == "waiting"
    assert any(item["action"] == "fix" for item in waiting["plan"]["items"])
    assert git(repo, "branch", "--list", "torchtpu/*") == ""
    again = cli("migrate", "--resume", waiting["run"], "--json")
    assert again.code == 4
    done = json.loads(cli("migrate", "--resume", waiting["run"], "--yes", "--json").out)
    assert done["delivery"]["kind"] == "branch"


def test_a_finished_run_is_told_again(cli, repo):
    document = migrated(cli, repo)
    ended = cli("migrate", "--resume", document["run"])
    assert ended.code == document["exit_code"]
    assert "is finished" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give a repository, or --resume"),
        (("--resume", "abcdef"), "There is no run abcdef"),
        (("--resume", "../../etc"), "There is no run"),
        (("REPO", "--entry", "python absent.py"), "there is no absent.py in the committed files"),
        (("REPO", "--entry", 'python "train.py'), "cannot be read"),
        (("REPO", "--entry", ""), "entry command is empty"),
        (("REPO", "--select", "XYZ9"), "XYZ9"),
        (("REPO", "--memory", "plenty"), "is no size"),
        (("REPO", "--python", "/no/such/python"), "There is no interpreter"),
        (("REPO", "--branch", "a..b"), "no valid branch name"),
        (("REPO", "--branch", "main"), "A branch named 'main' exists"),
        (("REPO", "--out", "/no/such/folder/x.patch"), "There is no folder"),
    ],
)
def test_wrong_usage_is_explained_and_leaves_no_run(cli, repo, home, arguments, message):
    words = [str(repo) if word == "REPO" else word for word in arguments]
    ended = cli("migrate", *words)
    assert ended.code == 2, ended
    assert message in ended.err
    assert not list((home / "runs").glob("*"))
    assert json.loads(cli("migrate", *words, "--json").out)["exit_code"] == 2


def test_torchtpu_toml_names_the_entry_and_limits(cli, repo):
    commit(repo, **{"torchtpu.toml": 'entry = "python -c pass"\n[limits]\nsteps = 3\n'})
    document = json.loads(cli("migrate", repo, "--json").out)
    assert document["entries"][0]["origin"] == "torchtpu.toml"
    assert "--steps=3" in document["runs"][0]["command"]


def test_setup_runs_before_the_entry_and_never_in_the_checkout(cli, repo):
    before = fingerprint(repo)
    entry = "python -c \"open('made.txt').read()\""
    ended = cli("migrate", repo, "--setup", "echo hello > made.txt", "--entry", entry, "--json")
    assert json.loads(ended.out)["runs"][0]["outcome"] == "completed"
    assert fingerprint(repo) == before


def test_a_setup_that_fails_ends_the_run_with_its_log(cli, repo):
    ended = cli("migrate", repo, "--setup", "exit 7", *CHEAP)
    assert ended.code == 3
    assert "setup command 'exit 7' failed" in ended.err


def test_untracked_data_is_there_and_what_the_program_writes_is_not(cli, repo):
    (repo / ".gitignore").write_text("data\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "ignore")
    (repo / "data").mkdir()
    (repo / "data/numbers.txt").write_text("1")
    before = fingerprint(repo)
    entry = "python -c \"t=open('data/numbers.txt').read(); open('data/numbers.txt','w').write('2'); open('o','w')\""
    document = json.loads(cli("migrate", repo, "--entry", entry, "--json").out)
    assert document["runs"][0]["outcome"] == "completed", document["runs"]
    assert fingerprint(repo) == before


def test_a_missing_package_is_the_environments_lack(cli, repo):
    ended = cli("migrate", repo, "--entry", "python -c 'import no_such_package_x'", "--json")
    document = json.loads(ended.out)
    assert ended.code == 3
    runs = document["verdicts"][2]
    assert (runs["result"], runs["owner"]) == ("not run", "environment")
    assert "no_such_package_x" in runs["reason"]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [("raise SystemExit(7)", "exit-nonzero"), ("import os; os.abort()", "abort"), ("1/0", "exception"),
     ("import time; time.sleep(99)", "hang")],
)  # fmt: skip
def test_programs_that_end_badly_fail_the_stage_with_an_explanation(cli, repo, code, outcome):
    ended = cli("migrate", repo, "--entry", f"python -c '{code}'", "--idle-timeout", 3, "--json")
    document = json.loads(ended.out)
    assert ended.code == 1
    assert document["runs"][0]["outcome"] == outcome
    assert document["verdicts"][2]["result"] == "fail"
    assert document["diagnoses"][0]["cause"]


@pytest.mark.parametrize("code", ["os.abort()", "ctypes.string_at(0)", "os.kill(os.getppid(), 9)"])
def test_a_death_that_nothing_lays_to_the_backend_is_the_codes(cli, repo, code):
    document = json.loads(cli("migrate", repo, "--entry", f"python -c 'import ctypes, os; {code}'", "--json").out)
    assert document["runs"][0]["outcome"] == "abort"
    assert (document["diagnoses"][0]["owner"], document["verdicts"][2]["owner"]) == ("code", "code")


def test_no_secret_of_the_environment_reaches_the_run_folder(cli, repo, home, monkeypatch):
    monkeypatch.setenv("MY_API_TOKEN", "swordfish-4711")
    cli("migrate", repo, "--entry", "python -c 'import os; print(dict(os.environ))'")
    for path in home.rglob("*"):
        if path.is_file():
            assert b"swordfish-4711" not in path.read_bytes(), path


def test_a_fault_of_ours_is_a_message_and_a_file(cli, repo, home, monkeypatch):
    monkeypatch.setattr("agents.nodes.assess.count", lambda result: 1 / 0)
    ended = cli("migrate", repo, *CHEAP)
    assert ended.code == 5
    assert "Traceback" not in ended.err
    (trace,) = home.glob("runs/*/fault.txt")
    assert "ZeroDivisionError" in trace.read_text()
    monkeypatch.undo()


def test_carriage_returns_tabs_and_encodings_survive(cli, tmp_path):
    source = TRAIN.replace("\n", "\r\n").replace("print(", "if True:\r\n\tprint(") + "# \u00e9\r\n"
    repo = commit(tmp_path / "repo", train_py=source.encode("utf-8"), latin_py=b"# \xe9\nimport torch\n",
                  old_py=b"print 'two'; x.cuda()\n", broken_py=b"def (:\n  x.cuda()\n")  # fmt: skip
    document = migrated(cli, repo)
    after = subprocess.run(
        ["git", "show", f"{document['delivery']['branch']}:train.py"], cwd=repo, capture_output=True, check=True
    ).stdout
    assert b"\r\n\tprint(" in after
    assert after.count(b"\n") == after.count(b"\r\n")
    assert {file["path"] for file in document["not_examined"]} >= {"old.py", "broken.py"}
    assert git(repo, "diff", "--name-only", f"main...{document['delivery']['branch']}") == "train.py"


def test_the_projects_own_package_is_found_by_a_second_round(cli, tmp_path):
    repo = commit(tmp_path / "repo", train_py=TRAIN, lib__net_py="x = 1\n", bin__go_py="import lib.net\n")
    document = json.loads(cli("migrate", repo, "--entry", "python bin/go.py", "--json").out)
    assert [run["outcome"] for run in document["runs"]] == ["exception", "completed"]
    assert document["attempts"] == 2
    assert document["diagnoses"][0]["kind"] == "own-module"


def test_an_installable_project_is_imported_from_the_migrated_copy(cli, tmp_path, monkeypatch):
    # As after `pip install -e .`: the checkout itself is on the path of the interpreter.
    go = "import lib.net as n; print(n.__file__)\n"
    project = {"pyproject.toml": "[project]\nname = 'lib'\n"}
    repo = commit(tmp_path / "repo", train_py=TRAIN, src__lib__net_py=TRAIN, bin__go_py=go, **project)
    monkeypatch.setenv("PYTHONPATH", str(repo / "src"))
    (repo / "src/lib/net.py").write_text("x = 1\n")
    git(repo, "commit", "-qam", "small")
    document = json.loads(cli("migrate", repo, "--entry", "python bin/go.py", "--json").out)
    log = Path(document["runs"][0]["log"]).read_text()
    assert "/work/src/lib/net.py" in log


def test_a_failure_that_comes_again_ends_the_rounds(cli, tmp_path):
    main = "import sys\nif __name__ == '__main__':\n    sys.exit(2)\nimport torch\n"
    repo = commit(tmp_path / "repo", **{f"train{n}_py": main + "#" * n for n in range(5)})
    document = json.loads(cli("migrate", repo, "--json").out)
    assert 1 < document["attempts"] <= 3
    assert len(document["runs"]) == document["attempts"]
    assert document["verdicts"][2]["result"] == "fail"


def test_a_device_that_is_not_there_is_the_environments_lack(cli, repo):
    ended = cli("migrate", repo, *CHEAP, "--device", "hardware", "--json")
    runs = json.loads(ended.out)["verdicts"][2]
    assert ended.code == 3
    assert (runs["result"], runs["owner"]) == ("not run", "environment")


def test_an_interpreter_without_torch_can_still_be_migrated_for(cli, repo, tmp_path):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    ended = cli("migrate", repo, "--entry", "python train.py", "--python", tmp_path / "bare/bin/python", "--json")
    document = json.loads(ended.out)
    assert ended.code == 3
    assert document["delivery"]["kind"] == "branch"
    assert document["verdicts"][1]["result"] == "pass"
    assert "torch" in document["verdicts"][2]["reason"]


def test_a_repository_that_went_away_in_between_is_a_message(cli, repo):
    waiting = json.loads(cli("migrate", repo, *CHEAP, "--approve", "--json").out)
    repo.rename(repo.with_name("moved"))
    ended = cli("migrate", "--resume", waiting["run"], "--yes")
    assert ended.code == 2
    assert "is gone" in ended.err


def test_several_entries_are_all_run_and_the_worst_counts(cli, repo):
    more = ("--entry", "python -c 'raise SystemExit(3)'")
    document = json.loads(cli("migrate", repo, *CHEAP, *more, "--json").out)
    assert [run["outcome"] for run in document["runs"]] == ["completed", "exit-nonzero"]
    assert len(document["diagnoses"]) == 1
    assert len(document["verdicts"][2]["evidence"]) >= 4
