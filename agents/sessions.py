"""The store of chats: one folder each, named, with the private tree, the conversation and what was run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agents import import_paths, settings
from agents.context import Context
from agents.entries import discover, from_texts
from agents.nodes.intake import take_in
from agents.progress import Progress
from agents.reach import Reach
from agents.runs import NotThere, RunFolder, home, remove_tree, write_whole
from agents.state import Request, State
from agents.toolkit.bench import Bench
from tools.errors import Exit, UserError
from tools.run import sandbox_available

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_CARD = "session.json"


class SessionCard(BaseModel):
    """What a list shows of a session."""

    name: str
    source: str
    created: str
    model: str = ""


def folder_of(name: str) -> RunFolder:
    """Where a session of that name is, or would be.

    Raises:
        UserError: It is no name.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"'{name}' is no name for a session.", "Use small letters, digits, dots and dashes.")
    return RunFolder(home() / "chats" / name)


def find(name: str) -> RunFolder:
    """The session of that name.

    Raises:
        NotThere: There is none, or it cannot be read.
        UserError: It is no name.
    """
    folder = folder_of(name)
    card(folder)
    return folder


def is_made(folder: RunFolder) -> bool:
    """Whether there is a session in a folder, and not the beginning of one."""
    return (folder.path / _CARD).is_file()


def card(folder: RunFolder) -> SessionCard:
    """A session's card.

    Raises:
        NotThere: There is no such session, or it cannot be read.
    """
    try:
        return SessionCard.model_validate_json((folder.path / _CARD).read_bytes())
    except (OSError, ValidationError) as error:
        raise NotThere(f"There is no session {folder.id}.", "List them with: torchtpu-agent chat --list") from error


def every() -> list[SessionCard]:
    """All sessions, oldest first; folders that hold none are passed over."""
    found: list[SessionCard] = []
    for path in (home() / "chats").glob(f"*/{_CARD}"):
        try:
            found.append(SessionCard.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            continue
    return sorted(found, key=lambda each: each.created)


def free_name(source: str) -> str:
    """A name that is not taken: the repository's, with a number behind it where needed."""
    stem = re.sub(r"[^a-z0-9._-]+", "-", Path(source).name.lower().removesuffix(".git")).strip("-.") or "chat"
    taken = {each.name for each in every()}
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def create(request: Request, name: str, progress: Progress, model: str = "") -> RunFolder:
    """Make a session: a private tree of the source, its settings and entries.

    Raises:
        UserError: The name is taken, or the source cannot be used.
    """
    folder = folder_of(name)
    if is_made(folder):
        raise UserError(f"There is a session {name}.", f"Go on with it: torchtpu-agent chat --resume {name}")
    try:
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"{folder.path} cannot be made: {error.strerror}.", "Set TORCHTPU_HOME.", Exit.ENVIRONMENT
        ) from error
    try:
        state = _state(request, folder, progress)
        write_whole(folder.path / "bench.json", state.model_dump_json(indent=1))
        made = SessionCard(name=name, source=state.origin.name, created=request.created, model=model)
        write_whole(folder.path / _CARD, made.model_dump_json(indent=1))
    except BaseException:  # an interrupt too: half a session is none
        remove_tree(folder.path)
        raise
    return folder


def _state(request: Request, folder: RunFolder, progress: Progress) -> State:
    progress.working("intake", request.source)
    remove_tree(folder.tree)
    source = take_in(request, folder)
    for note in source.notes:
        progress.note(note)
    root = folder.tree / source.scope
    combined = settings.combine(request, settings.read(root))
    entries = from_texts(combined.entries, "given", root) or discover(root, Reach(root), set())[:1]
    return State(
        run_id=folder.id, request=request, settings=combined, source=source, entries=entries, attempt=0,
        import_paths=import_paths.of_project(folder.tree, source.scope),
    )  # fmt: skip


def bench_of(folder: RunFolder, progress: Progress) -> Bench:
    """The workbench of a session as it was left, without what a killed process left half-written.

    Raises:
        UserError: Its files cannot be read.
    """
    try:
        state = State.model_validate_json((folder.path / "bench.json").read_bytes())
    except (OSError, ValidationError) as error:
        raise UserError(
            f"The files of session {folder.id} in {folder.path} are damaged.", "Start a new one."
        ) from error
    sandboxed = state.request.sandbox and sandbox_available()
    bench = Bench(state, Context(folder=folder, progress=progress), only_entries=not sandboxed)
    bench.clean()
    return bench


@contextmanager
def held(folder: RunFolder) -> Iterator[None]:
    """Hold a session, so that no second process works on it."""
    with folder.lock():
        yield


Ask = Callable[[str], bool]
