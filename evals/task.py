"""Reads a task and lays its repository out as a fresh git checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.git import run_git

TASKS = Path(__file__).resolve().parent / "tasks"
PRIVATE = "TORCHTPU_TASKS"
"""Names a folder of further tasks, which nobody who works on this project has seen."""
AUTHOR = ("user.name=Task", "user.email=task@example.invalid")


class Baseline(BaseModel):
    """Facts about the unmodified repository.

    Attributes:
        fails_without_cuda: Pattern of the error of its first entry on a machine without CUDA; empty where it ends
            well there, computing on the CPU.
        own_tests: Command of the repository's own tests, which pass on a CPU; empty where it has none.
        num_parameters: Parameters of the model with the repository's own configuration.
        symbols: Size of the vocabulary.
        first_loss: Bounds of the loss of the first step.
    """

    model_config = ConfigDict(extra="forbid")

    fails_without_cuda: str
    own_tests: str = ""
    num_parameters: int | None = None
    symbols: int | None = None
    first_loss: tuple[float, float] | None = None


class Checks(BaseModel):
    """What the hidden checks hold a migrated tree to; whoever migrates never sees it.

    Attributes:
        steps: Optimizer steps that each entry takes on the device; 0 where it does not train.
        numbers: Fewest numbers (losses, accuracies) that each entry prints about what it computed.
        draws: The programs draw random numbers on the device, which differ from the CPU's with the same seed; numbers
            are then those of a further run whose draws are made on the CPU and copied.
        tolerance: Largest difference of a printed number from the original's, as a share of its size.
        cpu_entry: Command by which the original runs on the CPU without CUDA; empty where it cannot.
    """

    model_config = ConfigDict(extra="forbid")

    steps: int = 1
    numbers: int = 2
    draws: bool = False
    tolerance: float = 0.02
    cpu_entry: str = ""


class Task(BaseModel):
    """A repository, what to run in it, and what is known about it."""

    model_config = ConfigDict(extra="forbid")

    name: str
    title: str
    difficulty: str
    entries: list[str]
    licence: str
    uses: list[str]
    baseline: Baseline
    checks: Checks = Checks()
    folder: Path

    @property
    def source(self) -> Path:
        """The folder that holds the task's repository, without history."""
        return self.folder / "repo"

    @property
    def reference(self) -> Path:
        """A migration by hand, as a patch; it passes every check."""
        return self.folder / "reference.patch"

    @property
    def hidden(self) -> Path:
        """A program that is run in the migrated tree on the device and ends with 0 if all is well; may be absent."""
        return self.folder / "hidden.py"

    def digest(self) -> str:
        """Changes with every file of the task."""
        found = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts):
                found.update(f"{path.relative_to(self.folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
        return found.hexdigest()[:16]

    def checkout(self, target: Path) -> Path:
        """Copy the repository to `target`, which must not exist, and commit it there."""
        shutil.copytree(self.source, target, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
        commit_all(target, self.title)
        return target


def commit_all(folder: Path, message: str) -> str:
    """Make `folder` a git repository with one commit of everything in it; return the commit's id."""
    run_git(folder, "init", "--quiet", "--template=", "--initial-branch=main", private=True)
    run_git(folder, "add", "--all", private=True)
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", message, private=True, config=AUTHOR)
    return run_git(folder, "rev-parse", "HEAD", private=True).decode().strip()


def folders() -> dict[str, Path]:
    """The folder of each task by its name: those of this tree, then those of the folder that TORCHTPU_TASKS names."""
    private = os.environ.get(PRIVATE)
    roots = [TASKS, *([Path(private)] if private else [])]
    return {path.parent.name: path.parent for root in roots for path in sorted(root.glob("*/task.toml"))}


def load(name: str) -> Task:
    """Read the task of that name.

    Raises:
        KeyError: There is none.
        ValueError: Its file says something unknown.
    """
    folder = folders()[name]
    found = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
    return Task.model_validate({**found, "folder": folder})


def names() -> list[str]:
    """Names of all tasks."""
    return sorted(folders())
