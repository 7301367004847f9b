"""The program that is tuned: copies of it, its recorded step, and its estimates."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents import import_paths, workspace
from agents.context import Context
from agents.runs import home, remove_tree
from agents.tuning.state import TuneState
from tools import commands
from tools import estimate as estimating
from tools import profile as profiler
from tools import run as runner
from tools.estimate import Estimate, Mode
from tools.profile import ProfileRequest


@contextmanager
def copied(state: TuneState, context: Context, command: str) -> Iterator[ProfileRequest]:
    """A request to profile the tree as it stands, in a copy with the user's data and after the setup commands."""
    asked, source, folder = state.request, state.origin, context.folder.path / "profile"
    copy = folder / "copy"
    python = Path(asked.python) if asked.python else None
    data = Path(source.files) if source.files else None
    changed = set(source.checkout.modified) if source.checkout else set[str]()
    links = asked.sandbox and runner.sandbox_available()
    folder.mkdir(exist_ok=True)
    try:
        workspace.build(context.folder.tree, data, copy, links=links, left_out=changed)
        for number, text in enumerate(state.settings.setup, 1):
            setup = runner.RunRequest(
                command=commands.parse(text), cwd=copy / source.scope, device="cpu", python=python,
                sandbox=asked.sandbox, writable=[copy], log=folder / f"setup-{number}.log",
            )  # fmt: skip
            workspace.set_up(text, setup)
        assert asked.target is not None
        yield ProfileRequest(
            command=commands.parse(command).importing(import_paths.within(copy, state.import_paths)),
            cwd=copy / source.scope,
            original=copy / source.scope,
            target=asked.target,
            python=python,
            timeout=state.settings.timeout,
            memory=state.settings.memory,
            sandbox=asked.sandbox,
            state=home() / "profiles",
            quick=state.options.quick,
        )
    finally:
        remove_tree(copy)


def estimated(request: ProfileRequest, context: Context, mode: Mode = "launched") -> Estimate:
    """The estimate of a step, told while it is made."""
    return estimating.estimate(request, mode, lambda said: context.progress.working("estimate", said))


def recorded(request: ProfileRequest) -> dict[str, Any]:
    """The step that was recorded for an estimate."""
    path = profiler.place_of(request) / profiler.STEP
    return dict(json.loads(gzip.decompress(path.read_bytes())))
