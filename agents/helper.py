"""Who gets what rules left in a migration: the model that the request names, or one that is played again."""

from __future__ import annotations

from pathlib import Path

from agents.context import Helper
from agents.llm.budget import Budget
from agents.llm.client import Client
from agents.llm.settings import CONTEXT, configured
from agents.llm.trajectory import Replay, read
from agents.progress import Progress
from agents.state import Request


def helper_of(request: Request, progress: Progress) -> Helper | None:
    """The request's model, or None where it names none.

    Raises:
        UserError: Neither a key nor a server is set for it, or the trajectory to be played cannot be read.
    """
    if request.replay:
        record = read(Path(request.replay))
        return Helper(record.model, f"(replayed from {request.replay})", Replay(record), Budget(), CONTEXT)
    if request.model is None:
        return None
    source = Path(request.source)
    chosen = configured(request.model, source if source.is_dir() else None)
    assert chosen is not None
    client = Client(chosen, note=progress.note)
    return Helper(chosen.model, chosen.where, client, chosen.budget, chosen.context)
