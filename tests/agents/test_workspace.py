"""The folder a program runs in: the migrated tree and the user's data, and never the user's files themselves."""

from __future__ import annotations

import os

import pytest

from agents import workspace
from tests.agents.test_entries import write

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "LARGE", 100)
    tree = write(tmp_path / "home/runs/ab/tree", {"train.py": "new", ".git/HEAD": "x", "sub/.git": "kept"})
    original = write(tmp_path / "original", {"train.py": "old", "data/small.txt": "1", "data/big.dat": "x" * 200})
    return tree, original, tmp_path / "home/runs/ab/work"


def build(places, links=True, left_out=()):
    tree, original, work = places
    return workspace.build(tree, original, work, links=links, left_out=set(left_out)), work


def test_the_tree_wins_and_data_is_added(places):
    overlay, work = build(places)
    assert (work / "train.py").read_text() == "new"
    assert (work / "data/small.txt").read_text() == "1"
    assert not (work / ".git").exists()
    assert (overlay.copied, overlay.linked) == (1, 1)


def test_large_files_are_links_only_where_the_sandbox_keeps_them(places):
    _, work = build(places)
    assert (work / "data/big.dat").is_symlink()
    _, work = build(places, links=False)
    assert not (work / "data/big.dat").is_symlink()


def test_checkpoints_are_copied_since_programs_overwrite_them(places):
    (places[1] / "ckpt.pt").write_text("x" * 200)
    _, work = build(places)
    assert not (work / "ckpt.pt").is_symlink()


def test_environments_caches_and_changed_files_stay_out(places):
    write(
        places[1],
        {"env/pyvenv.cfg": "", "env/x.py": "", "node_modules/a.js": "", "__pycache__/a.pyc": "", "staged.py": ""},
    )
    _, work = build(places, left_out=["staged.py"])
    assert sorted(os.listdir(work)) == ["data", "sub", "train.py"]


def test_links_keep_their_meaning(places, tmp_path):
    tree, original, _ = places
    write(tmp_path, {"shared/set.txt": "far"})
    (original / "inside").symlink_to("data/small.txt")
    (original / "outside").symlink_to("../shared/set.txt")
    (original / "loop").symlink_to("loop")
    (tree / "tracked").symlink_to("../shared/set.txt")
    overlay, work = build(places)
    assert os.readlink(work / "inside") == "data/small.txt"
    assert (work / "outside").read_text() == "far"
    assert (work / "tracked").read_text() == "far"
    assert not os.path.lexists(work / "loop")
    assert any("loop" in note for note in overlay.notes)


def test_a_file_of_git_lfs_is_the_real_one(places):
    tree, original, _ = places
    write(tree, {"model.bin": POINTER})
    write(original, {"model.bin": "12345"})
    _, work = build(places)
    assert (work / "model.bin").read_text() == "12345"


def test_a_folder_of_very_many_files_is_one_link(places, monkeypatch):
    monkeypatch.setattr(workspace, "MANY", 3)
    write(places[1], {f"images/{n}.jpg": "" for n in range(5)})
    overlay, work = build(places)
    assert (work / "images").is_symlink()
    assert any("images/" in note for note in overlay.notes)
    _, work = build(places, links=False)
    assert not (work / "images").is_symlink()


def test_an_old_work_folder_is_replaced_even_when_it_was_made_read_only(places):
    _, work = build(places)
    write(work, {"kept/x": ""})
    (work / "kept").chmod(0o500)
    build(places)
    assert not (work / "kept").exists()
