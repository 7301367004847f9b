"""The migration by hand that comes with a task: what this one fails, a check asks too much of."""

from __future__ import annotations

import shutil
from pathlib import Path

from evals.candidates.answer import Answer, Limits
from evals.task import Task
from tools.git import GitError, run_git


def migrate(task: Task, checkout: Path, place: Path, _limits: Limits) -> Answer:
    """Apply the task's patch."""
    if not task.reference.is_file():
        return Answer(tree=None, why="the task has no reference.patch")
    tree = Path(shutil.copytree(checkout, place / "tree", symlinks=True))
    try:
        run_git(tree, "apply", "--whitespace=nowarn", str(task.reference), private=True)
    except GitError as error:
        return Answer(tree=None, why=f"reference.patch does not apply: {error}")
    return Answer(tree=tree)
