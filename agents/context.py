"""What the nodes of a graph work with besides the state: their run's folder and a place to speak."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agents.progress import Progress
from agents.runs import RunFolder
from agents.state import State


@dataclass(frozen=True)
class Context:
    """Collaborators of the nodes.

    Attributes:
        folder: Where the run keeps its files.
        progress: Where nodes say what they do.
        verbose: Whether native log lines of the backend are let through.
        assume_yes: Whether the plan is approved without asking.
    """

    folder: RunFolder
    progress: Progress
    verbose: bool = False
    assume_yes: bool = False

    def root(self, state: State) -> Path:
        """The part of the private tree that is migrated."""
        return self.folder.tree / state.origin.scope
