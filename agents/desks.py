"""Sets up what a chat works with: the session's bench, and the model that answers, where one is named."""

from __future__ import annotations

from pathlib import Path

from agents import sessions
from agents.debug import Desk
from agents.llm.client import Client
from agents.llm.settings import ModelSettings
from agents.llm.trajectory import Replay, Trajectory, read
from agents.modes import Mode
from agents.progress import Progress
from agents.runs import RunFolder


def furnished(
    folder: RunFolder, mode: Mode, chosen: ModelSettings | None, replay: Path | None, progress: Progress
) -> Desk:
    """The desk of a session; who speaks there is not said yet.

    Args:
        folder: The session.
        mode: What a model may do unasked.
        chosen: The model; None where there is none.
        replay: Trajectory file that is played again in place of a model.
        progress: Where tools say what they do.
    """
    bench = sessions.bench_of(folder, progress)
    desk = Desk(bench=bench, mode=mode)
    if replay is not None:
        record = read(replay)
        desk.model = Replay(record)
        desk.trajectory = Trajectory(folder.path / "replayed.json", record.model, bench.state.origin.name, bench.tip())
    elif chosen is not None:
        desk.model = Client(chosen, note=progress.note)
        desk.budget, desk.context = chosen.budget, chosen.context
        path = folder.path / "trajectory.json"
        desk.trajectory = Trajectory(path, chosen.model, bench.state.origin.name, bench.tip())
    return desk
