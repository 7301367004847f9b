"""The store of runs: one folder each under the user's state directory."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

import platformdirs
from pydantic import BaseModel, ValidationError

from agents.state import Request
from tools.errors import Exit, UserError

Status = Literal["running", "waiting", "finished", "interrupted", "failed"]


class NotThere(UserError):
    """There is no run, or no session, of that name."""


class RunCard(BaseModel):
    """The few lines of a run that a list shows."""

    id: str
    source: str
    created: str
    status: Status = "running"
    headline: str = ""
    exit_code: int | None = None


def home() -> Path:
    """The state directory: TORCHTPU_HOME, or the platform's place for an application's state."""
    named = os.environ.get("TORCHTPU_HOME")
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_state_dir("torchtpu-agent"))


def now() -> str:
    """The time, as requests and cards carry it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def write_whole(path: Path, data: bytes | str) -> None:
    """Write a file so that it is either the old one or the new one, also when killed."""
    raw = data.encode() if isinstance(data, str) else data
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def remove_tree(path: Path) -> None:
    """Remove a folder of ours, including folders that were made read-only inside it."""
    if not path.exists():
        return
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)
    shutil.rmtree(path)


class RunFolder:
    """One run's folder and the names in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.tree = path / "tree"
        self.work = path / "work"
        self.database = path / "state.sqlite"
        self.findings = path / "findings.json"
        self.report = path / "report.md"
        self.report_json = path / "report.json"
        self.patch = path / "migration.patch"
        self.trace = path / "fault.txt"

    @property
    def request(self) -> Request:
        """What was asked for when the run was started."""
        return Request.model_validate_json((self.path / "request.json").read_bytes())

    @property
    def command(self) -> str:
        """The command that the run belongs to, and that goes on with it."""
        return "tune" if self.request.tune else "migrate"

    @property
    def card(self) -> RunCard:
        """The run's line in a list."""
        return RunCard.model_validate_json((self.path / "run.json").read_bytes())

    def update(self, **changes: object) -> None:
        """Change fields of the run's card."""
        card = self.card.model_copy(update=changes)
        write_whole(self.path / "run.json", card.model_dump_json(indent=1))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run, so that nobody else works on it; the system lets go when we die.

        Raises:
            UserError: Another process is working on it.
        """
        with (self.path / "lock").open("w") as file:
            if not _take(file):
                raise UserError(f"Run {self.id} is being worked on by another process.", "Wait for it to end.")
            yield

    def is_held(self) -> bool:
        """Whether a process is working on the run."""
        with (self.path / "lock").open("a") as file:
            return not _take(file)


def _take(file: IO[str]) -> bool:
    """Lock a file unless another process has; where there are no such locks, nobody is kept out."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def create(request: Request, name: str) -> RunFolder:
    """Make the folder of a new run; `name` is what a list calls its source."""
    runs = home() / "runs"
    try:
        runs.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = RunFolder(_new_folder(runs))
    except OSError as error:
        raise UserError(
            f"The state directory {runs} cannot be written: {error.strerror}.",
            "Set TORCHTPU_HOME to a folder you can write to.",
            Exit.ENVIRONMENT,
        ) from error
    _describe(folder, request, name)
    return folder


def named(run_id: str, request: Request) -> RunFolder:
    """The run of that id, made where there is none; for a caller that has ids of its own.

    Raises:
        UserError: It is no id.
    """
    folder = RunFolder(home() / "runs" / run_id)
    if not re.fullmatch(r"[0-9a-f]{1,64}", run_id):
        raise UserError(f"'{run_id}' is no id of a run.", "Use small hexadecimal digits.")
    if not (folder.path / "run.json").is_file():
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        _describe(folder, request, request.source)
    return folder


def _describe(folder: RunFolder, request: Request, name: str) -> None:
    card = RunCard(id=folder.id, source=name, created=request.created)
    try:
        write_whole(folder.path / "request.json", request.model_dump_json(indent=1))
        write_whole(folder.path / "run.json", card.model_dump_json(indent=1))
    except BaseException:  # an interrupt too: without its card nobody would find the folder again
        remove_tree(folder.path)
        raise


def _new_folder(runs: Path) -> Path:
    while True:
        path = runs / secrets.token_hex(3)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path


def find(run_id: str, damaged: bool = False) -> RunFolder:
    """The run of that id; one whose own files cannot be read only where `damaged` asks for it too.

    Raises:
        NotThere: There is none.
        UserError: Its files cannot be read.
    """
    folder = RunFolder(home() / "runs" / run_id)
    if not re.fullmatch(r"[0-9a-f]{1,64}", run_id) or not (folder.path / "run.json").is_file():
        raise NotThere(f"There is no run {run_id}.", "List them with: torchtpu-agent runs list")
    if not damaged:
        _check(folder)
    return folder


def _check(folder: RunFolder) -> None:
    try:
        finished = folder.card.status == "finished"
        _ = folder.request
    except (OSError, ValidationError) as error:
        raise is_damaged(folder) from error
    if finished and not folder.report_json.is_file():
        raise is_damaged(folder)


def is_damaged(folder: RunFolder) -> UserError:
    """What to say of a run whose own files cannot be read."""
    return UserError(
        f"The files of run {folder.id} in {folder.path} are damaged.",
        f"Start a new migration, and remove this one with: torchtpu-agent runs delete {folder.id}",
    )


def every() -> list[RunFolder]:
    """All runs, oldest first; folders that hold no readable run are passed over."""
    found: list[tuple[str, RunFolder]] = []
    for path in (home() / "runs").glob("*/run.json"):
        folder = RunFolder(path.parent)
        try:
            found.append((folder.card.created, folder))
        except (OSError, ValidationError):
            continue
    return [folder for _, folder in sorted(found, key=lambda pair: pair[0])]


def status(folder: RunFolder) -> Status:
    """The run's status now: one that says it is running but is not held was interrupted."""
    card = folder.card
    return "interrupted" if card.status == "running" and not folder.is_held() else card.status


def delete(folder: RunFolder) -> None:
    """Remove a run with its private tree, logs and report; a branch handed over stays.

    Raises:
        UserError: It is being worked on.
    """
    with folder.lock():
        remove_tree(folder.path)
