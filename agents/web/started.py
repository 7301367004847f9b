"""The migrations that were started from the page: each a child that works on one run of the store."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

from fastapi import FastAPI
from pydantic import BaseModel

from agents import runs
from agents.runs import RunFolder, home
from agents.state import Request
from agents.web import children
from tools.errors import Exit, UserError
from tools.git import without_password

_PATIENCE = 20.0
"""Seconds that a child has to put its run down before it is ended for good."""


class Start(BaseModel):
    """A run that was asked for, also where it never came to be."""

    id: str
    source: str


class Started:
    """Children of this server, by the id of their run.

    Args:
        most: How many at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self, request: Request) -> str:
        """Begin a migration; the id of its run.

        Raises:
            UserError: Too many are being worked on.
        """
        with self._lock:
            self._check_room()
            folder = runs.create(request, without_password(request.source))
            start = Start(id=folder.id, source=without_password(request.source))
            runs.write_whole(_log(folder.id).with_suffix(".json"), start.model_dump_json())
            self._work_on(folder)
        return folder.id

    def resume(self, folder: RunFolder, *, approve: bool = False) -> None:
        """Go on with a run.

        Raises:
            UserError: It is being worked on, or too many are.
        """
        with self._lock:
            if folder.is_held() or self.owns(folder.id):
                raise UserError(f"Run {folder.id} is being worked on.", "Wait for it to end.")
            self._check_room()
            self._work_on(folder, *(["--yes"] if approve else []))

    def owns(self, run_id: str) -> bool:
        """Whether a child of ours works on a run."""
        child = self._children.get(run_id)
        return child is not None and child.poll() is None

    def stop(self, run_id: str) -> bool:
        """Ask the child of a run to put it down; whether there was one."""
        child = self._children.get(run_id)
        if child is None or child.poll() is not None:
            return False
        child.send_signal(signal.SIGTERM)
        return True

    def running(self) -> int:
        """How many children are at work."""
        return sum(child.poll() is None for child in self._children.values())

    def close(self) -> None:
        """Have all children put their runs down, which can be gone on with later."""
        for run_id in self._children:
            self.stop(run_id)
        for child in self._children.values():
            children.see_off(child, _PATIENCE)

    def _check_room(self) -> None:
        if self.running() >= self._most:
            raise UserError(
                f"{self._most} migrations are being worked on already.",
                "Wait for one to end, or stop one.",
                Exit.ENVIRONMENT,
            )

    def _work_on(self, folder: RunFolder, *options: str) -> None:
        with _log(folder.id).open("ab") as output:
            self._children[folder.id] = children.start(
                "agents.cli", folder.command, "--resume", folder.id, *options,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=str(home()),
            )  # fmt: skip


def of(app: FastAPI) -> Started:
    """The children of an application."""
    found: Started = app.state.started
    return found


def _log(run_id: str) -> Path:
    return children.own_folder() / f"run-{run_id}.log"


def start_of(run_id: str) -> Start | None:
    """What was asked for when a run was started from the page."""
    path = _log(run_id).with_suffix(".json")
    return Start.model_validate_json(path.read_bytes()) if path.is_file() else None


def said(run_id: str, most: int = 8000) -> str:
    """The end of what a run's child printed."""
    try:
        return _log(run_id).read_bytes()[-most:].decode("utf-8", "replace")
    except OSError:
        return ""
