"""Scans and patches of whole folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tools.findings import ScanResult
from tools.patch import patch_steps
from tools.scan import scan

CUDA = "import torch\n\nx = torch.ones(2).cuda()\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "pkg").mkdir(parents=True)
    (root / "train.py").write_text(CUDA)
    (root / "pkg" / "windows.py").write_bytes(b"\xef\xbb\xbf" + CUDA.replace("\n", "\r\n").encode())
    (root / "pkg" / "plain.py").write_text("x = 1\n")
    (root / "launch").write_text("#!/usr/bin/env python3\n" + CUDA)
    (root / "LICENSE").write_text("no script, though it says .cuda()\n")
    (root / "notes.txt").write_text(CUDA)
    (root / "broken.py").write_text(CUDA + "def f(:\n")
    (root / "old.py").write_text("print 'x'\nx.cuda()\n")
    (root / "latin.py").write_bytes(b"x = '\xe9'.cuda()\n")
    (root / "generated.py").write_text("x = x.cuda()\n")
    os.truncate(root / "generated.py", 50_000_000)
    (root / "self").symlink_to(".")
    os.mkfifo(root / "pipe.py")
    cell = {"cell_type": "code", "source": CUDA}
    (root / "explore.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file() and p.stat().st_size < 1e6}


def test_scan_finds_and_tells(repository: Path) -> None:
    before = snapshot(repository)
    result = scan(repository, select=["TPU104"])
    assert [f.path for f in result.findings] == ["explore.ipynb", "launch", "pkg/windows.py", "train.py"]
    assert {s.path for s in result.skipped} == {"broken.py", "generated.py", "latin.py", "old.py", "pipe.py", "self"}
    assert result.files == 9 and result.parsed == 4
    assert snapshot(repository) == before


@pytest.mark.parametrize("jobs", [2, 3])
def test_processes_find_the_same(repository: Path, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.scan._CHUNK", 2)
    seen: list[tuple[int, int]] = []
    assert scan(repository, jobs=jobs, on_progress=lambda d, n: seen.append((d, n))) == scan(repository)
    assert seen[-1][0] == seen[-1][1]


def test_unknown_codes_and_roots_are_refused(repository: Path) -> None:
    with pytest.raises(ValueError, match="TPU999"):
        scan(repository, select=["TPU999"])
    with pytest.raises(ValueError, match="X"):
        list(patch_steps(repository, ignore=["X"]))
    with pytest.raises(NotADirectoryError):
        scan(repository / "train.py")


def test_settings_of_the_repository(repository: Path) -> None:
    (repository / "torchtpu.toml").write_text(
        '[scan]\nselect = ["TPU104"]\nexclude = ["pkg"]\nper-file-ignores = {"launch" = ["TPU"]}\n'
    )
    assert [f.path for f in scan(repository).findings] == ["explore.ipynb", "train.py"]
    assert {path for step in patch_steps(repository) for path in step.files} == {"explore.ipynb", "train.py"}


def test_patch_writes_only_what_it_says_and_comes_to_rest(repository: Path) -> None:
    before = snapshot(repository)
    steps = list(patch_steps(repository, select=["TPU104"]))
    assert [step.rule for step in steps] == ["TPU104"]
    assert set(steps[0].files) == {"explore.ipynb", "launch", "pkg/windows.py", "train.py"}
    after = snapshot(repository)
    assert {path for path in before if after[path] != before[path]} == set(steps[0].files)
    assert steps[0].files == {path: after[path] for path in steps[0].files}
    assert (
        after["pkg/windows.py"].startswith(b"\xef\xbb\xbfimport torch\r\n") and b"\r\r" not in after["pkg/windows.py"]
    )
    assert len(steps[0].findings) == 4
    assert list(patch_steps(repository, select=["TPU104"])) == []


def test_all_rules_come_to_rest(repository: Path) -> None:
    steps = list(patch_steps(repository, unsafe=True))
    assert steps and not [s.skipped for s in steps if s.skipped]
    ids = [step.rule for step in steps]
    assert ids == sorted(ids) or len(ids) > len(set(ids))
    assert list(patch_steps(repository, unsafe=True)) == []


def test_unreadable_files_are_told(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        (repository / "train.py").chmod(0)
        result: ScanResult = scan(repository)
        assert any(s.path == "train.py" and "cannot be read" in s.reason for s in result.skipped)


def test_an_empty_folder_has_no_findings(tmp_path: Path) -> None:
    result = scan(tmp_path, jobs=2)
    assert result.files == 0 and not result.findings and not result.skipped
