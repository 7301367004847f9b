"""Reads a task and lays its repository out as a fresh git checkout."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tools.git import run_git

TASKS = Path(__file__).resolve().parent / "tasks"
AUTHOR = ("user.name=Task", "user.email=task@example.invalid")


class Baseline(BaseModel):
    """Facts about the unmodified repository.

    Attributes:
        fails_without_cuda: Pattern of the error on a machine without CUDA.
        own_tests: Command of the repository's own tests, which pass on a CPU.
        num_parameters: Parameters of the model with the repository's own configuration.
        symbols: Size of the vocabulary.
        first_loss: Bounds of the loss of the first step.
    """

    model_config = ConfigDict(extra="forbid")

    fails_without_cuda: str
    own_tests: str
    num_parameters: int
    symbols: int
    first_loss: tuple[float, float]


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

    @property
    def source(self) -> Path:
        """The folder that holds the task's repository, without history."""
        return TASKS / self.name / "repo"

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


def load(name: str) -> Task:
    """Read the task of that name."""
    return Task.model_validate(tomllib.loads((TASKS / name / "task.toml").read_text(encoding="utf-8")))


def names() -> list[str]:
    """Names of all tasks."""
    return sorted(path.parent.name for path in TASKS.glob("*/task.toml"))
