"""What the nodes of a graph work with besides the state: their run's folder and a place to speak."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agents.llm.budget import Budget
from agents.llm.client import Model
from agents.progress import Progress
from agents.runs import RunFolder
from agents.state import State


@dataclass(frozen=True)
class Helper:
    """The language model that the user named.

    Attributes:
        where: Its server, for people.
        budget: What it may spend in all.
        context: Characters of messages in one call.
    """

    name: str
    where: str
    client: Model
    budget: Budget
    context: int


@dataclass(frozen=True)
class Context:
    """Collaborators of the nodes.

    Attributes:
        folder: Where the run keeps its files.
        progress: Where nodes say what they do.
        verbose: Whether native log lines of the backend are let through.
        assume_yes: Whether the plan is approved without asking.
        model: Who gets what rules left.
    """

    folder: RunFolder
    progress: Progress
    verbose: bool = False
    assume_yes: bool = False
    model: Helper | None = None

    def root(self, state: State) -> Path:
        """The part of the private tree that is migrated."""
        return self.folder.tree / state.origin.scope
