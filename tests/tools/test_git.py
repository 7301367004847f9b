"""The git tool on real repositories: what it reads, what it makes, what it leaves alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import git
from tools.errors import UserError

DATE = "2026-01-02T03:04:05+00:00"


def sh(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=trunk"]
    return (
        subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


@pytest.fixture
def repo(tmp_path):
    path = tmp_path / "repo"
    path.mkdir()
    sh(path, "init", "-q")
    (path / "a.py").write_bytes(b"one\r\ntwo\r\n")
    sh(path, "add", "-A")
    sh(path, "commit", "-q", "-m", "first")
    return path


def private(repo, tmp_path):
    checkout = git.inspect(repo)
    tree = tmp_path / "tree"
    git.make_private(checkout, tree)
    git.start_branch(tree, "torchtpu/x", checkout.head)
    return checkout, tree


def change(tree, text=b"three\r\n"):
    (tree / "a.py").write_bytes(text)
    return git.commit_files(tree, ["a.py"], "TPU1: change\n", DATE)


def test_inspect_describes(repo):
    (repo / "a.py").write_text("changed")
    (repo / "new file").write_text("")
    seen = git.inspect(repo)
    assert (seen.branch, seen.modified, seen.untracked, seen.prefix) == ("trunk", ["a.py"], ["new file"], "")
    assert seen.head == sh(repo, "rev-parse", "HEAD")


def test_a_renamed_file_is_named_by_its_new_name(repo):
    sh(repo, "mv", "a.py", "b c.py")
    assert git.inspect(repo).modified == ["b c.py"]


def test_no_repository_is_none(tmp_path):
    assert git.inspect(tmp_path) is None


def test_private_trees_keep_every_byte(repo, tmp_path):
    (repo / ".gitattributes").write_text("* text eol=lf\n*.py filter=lfs diff=lfs ident\n")
    sh(repo, "-c", "filter.lfs.clean=cat", "add", ".gitattributes")
    sh(repo, "commit", "-q", "-m", "attributes")
    _, tree = private(repo, tmp_path)
    assert (tree / "a.py").read_bytes() == b"one\r\ntwo\r\n"
    change(tree)
    assert git.run_git(tree, "show", "HEAD:a.py", private=True) == b"three\r\n"


def test_commits_are_the_same_each_time(repo, tmp_path):
    checkout, tree = private(repo, tmp_path)
    first = change(tree)
    git.start_branch(tree, "torchtpu/x", checkout.head)
    assert (tree / "a.py").read_bytes() == b"one\r\ntwo\r\n"
    assert change(tree) == first


def test_start_branch_gets_over_what_a_killed_process_left(repo, tmp_path):
    checkout, tree = private(repo, tmp_path)
    (tree / ".git/index.lock").write_text("")
    (tree / ".git/refs/heads/torchtpu/x.lock").write_text("")
    (tree / "half.py").write_text("")
    (tree / "a.py").write_text("half")
    git.start_branch(tree, "torchtpu/x", checkout.head)
    assert sorted(p.name for p in tree.iterdir()) == [".git", "a.py"]


def test_hand_over_twice_is_once_and_never_overwrites(repo, tmp_path):
    _, tree = private(repo, tmp_path)
    tip = change(tree)
    assert git.hand_over(tree, repo, "torchtpu/x") is None
    assert git.hand_over(tree, repo, "torchtpu/x") is None
    assert sh(repo, "rev-parse", "torchtpu/x") == tip
    change(tree, b"four\n")
    assert "appeared" in git.hand_over(tree, repo, "torchtpu/x")
    assert sh(repo, "rev-parse", "torchtpu/x") == tip


def test_a_patch_applies(repo, tmp_path):
    checkout, tree = private(repo, tmp_path)
    patch = tmp_path / "p"
    patch.write_bytes(git.make_patch(tree, checkout.head, change(tree)))
    sh(repo, "apply", str(patch))
    assert (repo / "a.py").read_bytes() == b"three\r\n"


def test_repositories_of_another_hash(tmp_path):
    path = tmp_path / "repo"
    path.mkdir()
    sh(path, "init", "-q", "--object-format=sha256")
    (path / "a.py").write_text("")
    sh(path, "add", "-A")
    sh(path, "commit", "-q", "-m", "first")
    _, tree = private(path, tmp_path)
    change(tree)
    assert git.hand_over(tree, path, "torchtpu/x") is None


def test_a_repository_of_another_user_is_a_message(repo, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    kept = git._environment(False, {}) | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    monkeypatch.setattr(git, "_environment", lambda private, extra: kept)
    with pytest.raises(UserError) as caught:
        git.inspect(repo)
    assert "safe.directory" in caught.value.remedy


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "", "x.lock"])
def test_bad_branch_names(repo, name):
    with pytest.raises(UserError):
        git.check_branch_name(git.inspect(repo), name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:secret@host/x/y", "https://host/x/y"),
        ("https://host/x@y", "https://host/x@y"),
        ("git@host:x", "git@host:x"),
    ],
)
def test_passwords_are_left_out(url, shown):
    assert git.without_password(url) == shown
