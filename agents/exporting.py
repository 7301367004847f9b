"""A session that is open nowhere, as Markdown."""

from __future__ import annotations

from agents import debug, sessions
from agents.chat import Chat
from agents.modes import Mode
from agents.progress import Silent
from agents.transcript import markdown


def exported(name: str) -> str:
    """The whole session.

    Raises:
        UserError: There is none of that name, or another process works on it.
    """
    folder = sessions.find(name)
    # Held, since opening a bench brings its files back to the newest commit, under the feet of a tool at work.
    with sessions.held(folder):
        desk = debug.Desk(sessions.bench_of(folder, Silent()), Mode.READ_ONLY)
        with debug.opened(desk) as graph:
            return markdown(Chat(graph, desk, lambda _question: False))
