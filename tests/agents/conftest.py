"""Real git repositories, a private state directory and the command line, for the tests of this room."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """import torch

device = "cuda"
model = torch.nn.Linear(4, 2).cuda()
x = torch.randn(8, 4, device="cuda")
loss = model(x).sum()
loss.backward()
print(loss.item())
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, **files: str | bytes) -> Path:
    """Write files (`__` in a name is `/`, `_py` at its end `.py`) and commit everything."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "state")
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of a checkout, with index, HEAD and configuration, but not objects and branches."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.startswith((".git/objects", ".git/refs", ".git/logs/refs")) or path.is_dir():
            continue
        data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        seen[name] = hashlib.sha256(data).hexdigest()
    return seen


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state"
    monkeypatch.setenv("TORCHTPU_HOME", str(path))
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "repo", train_py=TRAIN)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ended]]:
    from agents.cli import main

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> Ended:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)
