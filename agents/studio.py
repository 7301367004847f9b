"""The graphs for LangGraph's development server and studio, which bring their own checkpoints: see langgraph.json.

Nothing but the state comes from there, so what the nodes work with is made from it. `migrate` takes
`{"run_id": "0a1b2c", "request": {"source": ..., "created": ...}}`; `debug` takes `{"said": ...}` and works on the
session that TORCHTPU_SESSION names.
"""

from __future__ import annotations

import os
from functools import cache

from agents import debug as talking
from agents import migrate as migrating
from agents import runs, sessions
from agents.context import Context
from agents.debug import Desk
from agents.helper import helper_of
from agents.llm.client import Client
from agents.llm.settings import configured
from agents.modes import Mode
from agents.progress import Silent
from agents.state import Request


def migrate() -> migrating.Graph:
    """The migrate graph; the folder of a run is made by its first node."""
    return migrating.build(lambda state: _context(state.run_id, state.request)).compile()


def _context(run_id: str, request: Request) -> Context:
    folder = runs.named(run_id, request)
    return Context(folder=folder, progress=Silent(), model=helper_of(request, Silent()))


def debug() -> talking.Graph:
    """The debug graph; edits and runs of a model wait for an answer to their interrupt."""
    return talking.build(lambda _state: _desk(os.environ.get("TORCHTPU_SESSION", ""))).compile()


@cache
def _desk(name: str) -> Desk:
    folder = sessions.find(name)
    desk = Desk(bench=sessions.bench_of(folder, Silent()), mode=Mode.ASK)
    chosen = configured(None, folder.tree)
    if chosen is not None:
        desk.model, desk.budget, desk.context = Client(chosen), chosen.budget, chosen.context
    return desk
