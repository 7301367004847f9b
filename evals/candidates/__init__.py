"""Who migrates a task: one file a candidate, each with `migrate(task, checkout, place, settings) -> Answer`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from evals.candidates.answer import Candidate


def candidates() -> dict[str, Candidate]:
    """All of them by name, found by their files."""
    names = [found.name for found in iter_modules(__path__) if found.name != "answer"]
    return {name: import_module(f"{__name__}.{name}") for name in names}
