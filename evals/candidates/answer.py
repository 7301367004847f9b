"""What a candidate is asked and what it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from evals.task import Task


class Limits(BaseModel):
    """What a candidate and a check may use.

    Attributes:
        python: Interpreter of the programs.
        timeout: Seconds for one run of a program.
        model: Language model, where one is named.
    """

    python: Path
    timeout: float = 300.0
    model: str = ""


class Answer(BaseModel):
    """A migrated tree and what is said of it.

    Attributes:
        tree: The folder that holds it; None where there is no answer.
        why: Why there is none, or what else is worth knowing.
        claims: Of `runs`, `trains` and `preserves`, those that the candidate says pass; one that it says nothing of
            counts as not claimed.
        trail: What it did, for a person.
    """

    tree: Path | None
    why: str = ""
    claims: list[str] = []
    trail: dict[str, str] = {}


class Candidate(Protocol):
    """A module of this package."""

    def migrate(self, task: Task, checkout: Path, place: Path, limits: Limits, /) -> Answer:
        """Migrate a checkout, a git repository that it may not write to, with `place` as its own folder."""
