"""The lock files: what keeps its version keeps its hashes, and the whole of pyproject.toml is in them."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lock", ROOT / "requirements/lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(version: str, sha: str) -> dict[str, object]:
    return {
        "metadata": {"name": "Some_Package", "version": version},
        "download_info": {"url": "https://example.org/x.whl", "archive_info": {"hashes": {"sha256": sha}}},
    }


@pytest.mark.parametrize(
    ("version", "sha", "hashes"),
    [("1.0", "a", ["a", "b"]), ("1.0", "c", ["a", "b", "c"]), ("1.0+cpu", "b", ["a", "b"]), ("1.1", "c", ["c"])],
)
def test_hashes_stay_with_their_version(lock, version, sha, hashes):
    old = lock.pins("some-package==1.0 \\\n    --hash=sha256:a \\\n    --hash=sha256:b\n")
    name, lines = lock.pin(chosen(version, sha), old)
    assert (name, lines[0]) == ("some-package", f"some-package=={version.partition('+')[0]}")
    assert lines[1:] == [f"--hash=sha256:{each}" for each in hashes]


def test_a_file_of_this_machine_is_hashed(lock, tmp_path):
    wheel = tmp_path / "a b.whl"
    wheel.write_bytes(b"")
    info = {"url": wheel.as_uri(), "archive_info": {}}
    assert lock.digest(info) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_what_the_project_needs_is_locked(lock):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = {re.split(r"[<>=;\[ ]", text)[0] for text in [*project["dependencies"], *extras["tpu"], *extras["dev"]]}
    locked = lock.pins((ROOT / "requirements/dev.txt").read_text())
    assert {re.sub(r"[-_.]+", "-", name).lower() for name in named} <= set(locked)
    assert set(locked).isdisjoint({"gitpython", "pip"})


def test_both_builds_of_torch_are_locked(lock):
    first = lock.pins((ROOT / "requirements/torch-cpu.txt").read_text())
    assert first == {"torch": [f"{lock.TORCH}+cpu", lock.TORCH_CPU_HASH]}
    both = lock.pins((ROOT / "requirements/dev.txt").read_text())["torch"]
    assert both[:2] == [lock.TORCH, lock.TORCH_CPU_HASH]
    assert len(both) > 2
