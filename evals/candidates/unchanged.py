"""Changes nothing: what this one passes, a check does not test."""

from __future__ import annotations

import shutil
from pathlib import Path

from evals.candidates.answer import Answer, Limits
from evals.task import Task


def migrate(_task: Task, checkout: Path, place: Path, _limits: Limits) -> Answer:
    """Hand the original back."""
    return Answer(tree=Path(shutil.copytree(checkout, place / "tree", symlinks=True)))
