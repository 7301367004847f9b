"""A session with the scripted model behind the real client over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from agents import debug, sessions
from agents.chat import Chat
from agents.debug import Desk
from agents.llm.budget import Budget
from agents.llm.client import Client
from agents.llm.settings import ModelSettings
from agents.llm.trajectory import Trajectory
from agents.modes import Mode
from agents.progress import Silent
from agents.runs import RunFolder
from agents.state import Request
from evals.scripted_model import Call, ScriptedModel, Turn
from tools import git


def edit(path: str, old: str, new: str, reason: str = "because") -> Call:
    return Call(name="edit_file", arguments={"path": path, "old": old, "new": new, "reason": reason})


@dataclass
class Talking:
    """An open chat and what was seen of it."""

    chat: Chat
    server: ScriptedModel
    folder: RunFolder
    said: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.said)

    def results(self) -> list[str]:
        return [message.content for message in self.chat.messages() if message.role == "tool"]


def settings(server: ScriptedModel, budget: Budget | None = None, context: int = 120_000) -> ModelSettings:
    return ModelSettings(
        model="scripted", base_url=server.base_url, api_key=SecretStr("none"), budget=budget or Budget(),
        context=context, timeout=20, retries=2,
    )  # fmt: skip


@contextmanager
def talking(
    source: Path,
    script: Sequence[Turn] | None,
    mode: Mode = Mode.AUTO_SAFE,
    budget: Budget | None = None,
    context: int = 120_000,
    answer: Callable[[str], bool] = lambda _question: True,
    name: str = "one",
    **request: Any,
) -> Iterator[Talking]:
    """A chat about `source`, new or gone on with; without a script there is no model."""
    folder = sessions.folder_of(name)
    if not folder.path.exists():
        wanted = Request(source=str(source), created="2026-01-01T00:00:00+00:00", device="cpu", **request)
        sessions.create(wanted, name, Silent())
    with ScriptedModel(script or []) as server, sessions.held(folder):
        desk = Desk(bench=sessions.bench_of(folder, Silent()), mode=mode)
        seen: list[str] = []
        pauses: list[float] = []
        desk.on_text = seen.append
        if script is not None:
            chosen = settings(server, budget, context)
            desk.model = Client(chosen, pause=pauses.append, note=seen.append)
            desk.budget, desk.context = chosen.budget, chosen.context
            desk.trajectory = Trajectory(folder.path / "trajectory.json", "scripted")
        with debug.opened(desk) as graph:
            yield Talking(Chat(graph, desk, answer), server, folder, seen, pauses)


def is_intact(talk: Talking) -> bool:
    """Whether the private tree is as it was found, file by file."""
    tree = talk.chat.bench.tree
    clean = not git.run_git(tree, "status", "--porcelain", "--ignored", private=True)
    return clean and talk.chat.bench.tip() == talk.chat.bench.base
