"""Which files of a folder are looked at, and what is said of the rest."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tools.code.source import Unreadable
from tools.errors import UserError
from tools.project import Project, Trait
from tools.settings import ScanSettings, matches, read_settings


def tree(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")


def reasons(project: Project) -> dict[str, str]:
    _ = project.paths
    return {skipped.path: skipped.reason for skipped in project.skipped}


def test_lists_files_and_leaves_environments_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "a.py",
        "b/c.py",
        ".git/hook.py",
        "node_modules/x.py",
        "env/pyvenv.cfg",
        "env/lib/y.py",
        "b/.hidden.py",
    )
    assert Project(tmp_path).paths == ["a.py", "b/.hidden.py", "b/c.py"]


def test_submodules_are_told(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "vendor/lib/.git", "vendor/lib/b.py")
    project = Project(tmp_path)
    assert project.paths == ["a.py"]
    assert "submodule" in reasons(project)["vendor/lib"]


def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    tree(root, "a.py")
    tree(outside, "secret.py")
    (root / "out.py").symlink_to(outside / "secret.py")
    (root / "out").symlink_to(outside)
    (root / "same.py").symlink_to("a.py")
    (root / "gone.py").symlink_to("nowhere.py")
    (root / "loop.py").symlink_to("loop.py")
    (root / "round").symlink_to(".")
    project = Project(root)
    assert project.paths == ["a.py"]
    assert {path: reason.split(" ", 3)[2] for path, reason in reasons(project).items()} == {
        "out.py": "out", "out": "to", "same.py": "to", "gone.py": "that", "loop.py": "that", "round": "to",
    }  # fmt: skip


def test_pipes_and_sockets_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.py")
        project = Project(tmp_path)
        assert project.paths == []
    assert reasons(project) == {"pipe.py": "not a regular file", "socket.py": "not a regular file"}


@pytest.mark.parametrize("name", ["line\nbreak.py", "tab\t.py", "d\u00e9j\u00e0 \U0001f600.py", "-rf.py", "a b.py"])
def test_odd_names_are_read(tmp_path: Path, name: str) -> None:
    tree(tmp_path, name)
    project = Project(tmp_path)
    assert project.paths == [name]
    assert project.read(name) == b"x = 1\n"


def test_names_that_are_not_text_are_told(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.py", "w") as file:
        file.write("x = 1\n")
    project = Project(tmp_path)
    assert project.paths == []
    assert reasons(project) == {"\\udcff.py": "its name is not UTF-8"}
    assert project.skipped[0].model_dump_json()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unlistable_folders_are_told(tmp_path: Path) -> None:
    tree(tmp_path, "closed/a.py", "b.py")
    (tmp_path / "closed").chmod(0)
    project = Project(tmp_path)
    assert project.paths == ["b.py"]
    assert "cannot be listed" in reasons(project)["closed"]
    (tmp_path / "closed").chmod(0o700)


def test_files_that_vanish_are_told(tmp_path: Path) -> None:
    tree(tmp_path, "a.py")
    project = Project(tmp_path)
    assert project.paths == ["a.py"]
    (tmp_path / "a.py").unlink()
    with pytest.raises(Unreadable, match="No such file"):
        project.read("a.py")


def test_traits_of_readable_files(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "big.py")
    (tmp_path / "b.py").write_text("class Batch:\n    def cuda(self):\n        pass\n")
    os.truncate(tmp_path / "big.py", 50_000_000)
    project = Project(tmp_path)
    assert project.has(Trait.OWN_CUDA) and not project.has(Trait.ASKS_FOR_ACCELERATOR)


def test_what_is_not_known_is_noted_as_asked(tmp_path: Path) -> None:
    project = Project(tmp_path, known=Trait.OWN_CUDA)
    assert project.has(Trait.OWN_CUDA) and project.asked == Trait.NONE
    assert not project.has(Trait.HALF_ON_CUDA) and project.asked == Trait.HALF_ON_CUDA


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/third_party/b.py", "third_party", True),
        ("third_party.py", "third_party", False),
        ("a/b_pb2.py", "*_pb2.py", True),
        ("a/b/c.py", "a/b", True),
        ("a/b/c.py", "a/*/c.py", True),
        ("a/b/c.py", "b/c.py", False),
        ("a/b/c.py", "a/", True),
    ],
)
def test_patterns(path: str, pattern: str, fits: bool) -> None:
    assert matches(path, pattern) is fits


def test_settings_are_read(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == ScanSettings()
    (tmp_path / "torchtpu.toml").write_text(
        'entry = "x"\n[scan]\nselect = ["TPU1"]\nexclude = ["old"]\n[scan.per-file-ignores]\n"tests" = ["TPU104"]\n'
    )
    settings = read_settings(tmp_path)
    assert settings.select == ("TPU1",) and settings.excludes("a/old/b.py")
    assert settings.ignored_in("tests/a.py") == ("TPU104",) and not settings.ignored_in("a.py")
    assert settings.with_codes(["TPU2"], ["TPU201"]).select == ("TPU2",)
    assert settings.with_codes([], ["TPU101"]).ignore == ("TPU101",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[scan", "cannot be read"),
        ("[scan]\nselct = []\n", "selct"),
        ("[scan]\nselect = 3\n", "select"),
        ("\0", "read"),
    ],
)
def test_bad_settings_are_told(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "torchtpu.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        read_settings(tmp_path)


def test_excluded_folders_are_not_entered(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "old/b.py", "c_pb2.py")
    assert Project(tmp_path, ScanSettings(exclude=("old", "*_pb2.py"))).paths == ["a.py"]
