"""Every kind of source and every kind of bad input: a clear message, and nothing of the user's changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.conftest import ROOT, TRAIN, commit, fingerprint, git

CHEAP = ("--entry", "python -c pass")
"""An entry that needs no torch, since what is looked at here happens before it."""


def migrate(cli, source, *more):
    return cli("migrate", source, "--entry", "python train.py", "--dry-run", *more)


def report(cli, source, *more):
    ended = migrate(cli, source, "--json", *more)
    assert ended.code == 0, ended
    return json.loads(ended.out)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "absent", "There is no"),
        (lambda p: _file(p / "train.py"), "is a file"),
        (lambda p: _folder(p / "empty"), "There is no Python"),
        (lambda p: _unborn(p / "unborn"), "has no commit yet"),
        (lambda p: commit(p / "words", readme="hello"), "There is no Python"),
        (lambda p: commit(p / "inside", train_py=TRAIN) / ".git", "inside a .git folder"),
    ],
    ids=["absent", "file", "empty", "no-commit", "no-python", "git-folder"],
)
def test_unusable_sources_are_named_and_leave_no_run(cli, tmp_path, home, make, message):
    ended = migrate(cli, make(tmp_path))
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert not list((home / "runs").glob("*"))


def _file(path: Path) -> Path:
    path.write_text(TRAIN)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _unborn(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q")
    return path


def test_a_folder_without_git_is_copied_and_answered_with_a_patch_that_applies(cli, tmp_path):
    folder = _folder(tmp_path / "plain")
    (folder / "train.py").write_text(TRAIN)
    before = fingerprint(folder)
    ended = cli("migrate", folder, *CHEAP, "--json")
    document = json.loads(ended.out)
    assert document["source_kind"] == "folder"
    assert document["delivery"]["kind"] == "patch"
    assert fingerprint(folder) == before
    subprocess.run(document["delivery"]["merge"], shell=True, check=True)
    assert "accelerator" in (folder / "train.py").read_text()


def test_a_dirty_checkout_is_migrated_at_head_and_said_so(cli, repo):
    (repo / "train.py").write_text(TRAIN + "print('mine')\n")
    (repo / "new.py").write_text("import torch\n")
    before = fingerprint(repo)
    document = report(cli, repo)
    notes = " ".join(document["notes"])
    assert "uncommitted changes are not included (HEAD is migrated): train.py" in notes
    assert "untracked code is not migrated" in notes
    assert fingerprint(repo) == before
    assert "mine" not in Path(document["delivery"]["patch"]).read_text()


def test_a_subdirectory_is_the_scope_and_the_rest_is_left(cli, tmp_path):
    repo = commit(tmp_path / "repo", train_py=TRAIN, sub__train_py=TRAIN)
    document = json.loads(cli("migrate", repo / "sub", *CHEAP, "--json").out)
    assert document["scope"] == "sub"
    changed = git(repo, "diff", "--name-only", f"main...{document['delivery']['branch']}")
    assert changed == "sub/train.py"


def test_an_untracked_folder_inside_a_repository_counts_as_a_plain_folder(cli, repo):
    (repo / "scratch").mkdir()
    (repo / "scratch/train.py").write_text(TRAIN)
    document = json.loads(cli("migrate", repo / "scratch", *CHEAP, "--json").out)
    assert document["source_kind"] == "folder"
    subprocess.run(document["delivery"]["merge"], shell=True, check=True)
    assert "accelerator" in (repo / "scratch/train.py").read_text()


def test_a_detached_head_is_migrated(cli, repo):
    git(repo, "checkout", "-q", "--detach")
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert any("detached" in note for note in document["notes"])
    assert document["delivery"]["branch"] in git(repo, "branch", "--list", "torchtpu/*")


def test_a_shallow_clone_gets_its_branch_and_stays_shallow(cli, tmp_path, repo):
    commit(repo, other_py="print(1)\n")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{repo}", shallow], check=True)
    before = fingerprint(shallow)
    document = json.loads(cli("migrate", shallow, *CHEAP, "--json").out)
    assert document["delivery"]["kind"] == "branch", document["delivery"]
    assert fingerprint(shallow) == before
    assert git(shallow, "rev-parse", "--is-shallow-repository") == "true"
    git(shallow, "fsck")


def test_a_bare_repository_gets_its_branch(cli, tmp_path, repo):
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", repo, bare], check=True)
    document = json.loads(cli("migrate", bare, *CHEAP, "--json").out)
    assert document["delivery"]["kind"] == "branch"
    assert any("bare" in note for note in document["notes"])
    assert git(bare, "rev-parse", document["delivery"]["branch"])


def test_a_linked_work_tree_gets_its_branch(cli, tmp_path, repo):
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", "-b", "side", str(linked))
    before = fingerprint(repo)
    document = json.loads(cli("migrate", linked, *CHEAP, "--json").out)
    assert git(repo, "rev-parse", document["delivery"]["branch"]) == document["delivery"]["tip"]
    assert fingerprint(repo) == before


def test_submodules_are_left_alone_and_named(cli, tmp_path, repo):
    library = commit(tmp_path / "library", lib_py=TRAIN)
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor")
    git(repo, "commit", "-q", "-m", "vendor")
    before = fingerprint(repo)
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert any("submodules are left alone: vendor" in note for note in document["notes"])
    assert git(repo, "diff", "--name-only", f"main...{document['delivery']['branch']}") == "train.py"
    assert fingerprint(repo) == before


def test_paths_with_spaces_and_letters_of_other_scripts(cli, tmp_path):
    repo = commit(tmp_path / "mein Ordner ü 数", **{"train_py": TRAIN, "ein Modell é_py": TRAIN})
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert {change["path"] for change in document["changes"]} == {"train.py", "ein Modell é.py"}
    assert document["delivery"]["kind"] == "branch"


def test_an_address_is_cloned_and_answered_with_a_patch(cli, repo):
    document = report(cli, f"file://{repo}", "--json")
    assert document["source_kind"] == "address"


def test_an_address_that_does_not_answer_is_a_message(cli, tmp_path):
    ended = migrate(cli, f"file://{tmp_path}/nothing.git")
    assert ended.code == 2
    assert "cannot be cloned" in ended.err


def test_other_transports_are_refused(cli, tmp_path):
    ended = migrate(cli, f"ext::sh -c 'touch {tmp_path}/owned'")
    assert ended.code == 2
    assert not (tmp_path / "owned").exists()


def test_links_that_loop_or_leave_the_tree_do_no_harm(cli, tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text(TRAIN)
    repo = commit(tmp_path / "repo", train_py=TRAIN)
    (repo / "loop").symlink_to("loop")
    (repo / "circle").symlink_to(".", target_is_directory=True)
    (repo / "away.py").symlink_to(outside)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "links")
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    assert {change["path"] for change in document["changes"]} == {"train.py"}
    assert outside.read_text() == TRAIN
    plain = tmp_path / "plain"
    shutil.copytree(repo, plain, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    document = report(cli, plain)
    assert {change["path"] for change in document["changes"]} == {"train.py"}


def test_a_read_only_checkout_is_answered_with_a_patch(repo):
    # A read-only mount also binds root, which permissions do not.
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("a read-only mount needs bubblewrap")
    mount = [bwrap, "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", str(repo), str(repo)]
    command = [sys.executable, "-m", "agents.cli", "migrate", str(repo), *CHEAP, "--json"]
    before = fingerprint(repo)
    done = subprocess.run([*mount, *command], cwd=ROOT, capture_output=True, text=True)
    document = json.loads(done.stdout)
    assert document["delivery"]["kind"] == "patch"
    assert any("read-only" in note for note in document["notes"])
    assert fingerprint(repo) == before
    subprocess.run(document["delivery"]["merge"], shell=True, check=True)


def test_a_repository_that_refuses_the_branch_is_answered_with_a_patch(cli, repo):
    # Works for root too: git cannot make a folder where a file is.
    (repo / ".git/refs/heads/torchtpu").write_text(git(repo, "rev-parse", "HEAD") + "\n")
    ended = cli("migrate", repo, *CHEAP, "--json", "--branch", "other/name")
    assert json.loads(ended.out)["delivery"]["kind"] == "branch"
    ended = cli("migrate", repo)
    assert ended.code == 2
    assert "A branch named 'torchtpu' exists" in ended.err


def test_hooks_filters_and_signing_of_the_user_neither_run_nor_break_it(cli, repo, tmp_path, monkeypatch):
    mark = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {mark}\nexit 1\n"
    for name in ("pre-commit", "commit-msg", "post-checkout", "reference-transaction", "post-merge"):
        hook = repo / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script)
        hook.chmod(0o755)
    (repo / ".gitattributes").write_text("*.py filter=bad text eol=crlf\n")
    subprocess.run(["git", "add", ".gitattributes"], cwd=repo, check=True)
    subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
        cwd=repo,
        check=True,
    )
    for setting in (f"filter.bad.clean=touch {mark}; false", f"filter.bad.smudge=touch {mark}; false",
                    "filter.bad.required=true", "commit.gpgsign=true", "gpg.program=/bin/false",
                    f"core.fsmonitor=touch {mark}", "core.autocrlf=true"):  # fmt: skip
        name, value = setting.split("=", 1)
        subprocess.run(["git", "config", name, value], cwd=repo, check=True)
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "foreign-index"))
    before = fingerprint(repo)
    document = json.loads(cli("migrate", repo, *CHEAP, "--json").out)
    monkeypatch.delenv("GIT_INDEX_FILE")
    assert document["delivery"]["kind"] == "branch", document["delivery"]
    assert not mark.exists()
    assert fingerprint(repo) == before
    numbers = git(repo, "-c", "core.fsmonitor=false", "diff", "--numstat", f"main...{document['delivery']['branch']}")
    _, removed, _ = numbers.split("\t")
    assert int(removed) < len(TRAIN.splitlines())
