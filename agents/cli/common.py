"""What all commands share: how they print, and how they end when something is wrong."""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import typer

from agents import interrupts
from agents.cli.output import OutputError, ReaderGone, echo, is_lost, print_json
from tools.errors import Exit, UserError, lacks_room
from tools.git import GitError

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")


def console(stderr: bool = False) -> Console:
    """A console for people."""
    from agents.cli.screen import Screen

    return Screen(stderr=stderr)


def guarded(command: Callable[P, Exit | None]) -> Callable[P, None]:
    """Let a command end with its exit code, and with a message instead of a traceback."""

    @functools.wraps(command)
    def guard(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("json_output"))
        try:
            code = command(*args, **kwargs) or Exit.PASSED
        except ReaderGone:
            code = Exit.PASSED
        except UserError as error:
            complain(error.message, error.remedy, error.exit_code, as_json)
            code = error.exit_code
        except (KeyboardInterrupt, typer.Abort):
            interrupts.closing()
            complain("Interrupted.", "", Exit.INTERRUPTED, as_json)
            code = Exit.INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is kept, not shown raw
            code = Exit.ENVIRONMENT if is_full_disk(error) else Exit.INTERNAL
            if is_full_disk(error):
                complain(*full_disk(), code, as_json)
            else:
                complain_of_fault(error, None, as_json)
        raise typer.Exit(int(code))

    return guard


def is_full_disk(error: BaseException | None) -> bool:
    """Whether something failed for want of room, be it in Python, in SQLite or in git."""
    while error is not None:
        if isinstance(error, OSError) and lacks_room(error):
            return True
        if isinstance(error, sqlite3.OperationalError) and "disk is full" in str(error):
            return True
        if isinstance(error, GitError) and _NO_ROOM.search(error.stderr):
            return True
        error = error.__cause__ or error.__context__
    return False


def full_disk(resume: str = "") -> tuple[str, str]:
    """Message and remedy where there is no room left."""
    from agents.runs import home

    remedy = "Free some space, or point TORCHTPU_HOME at another disk."
    return f"There is no room left on the disk of {home()}.", f"{remedy} {resume}".strip()


_NO_ROOM = re.compile(r"No space left on device|Out of diskspace|Disk quota exceeded")


def complain(message: str, remedy: str, code: Exit, as_json: bool) -> None:
    """Say what is wrong: on standard error, or as a JSON document; nobody may be there to hear it."""
    if as_json and not is_lost():
        with contextlib.suppress(OutputError):
            print_json({"error": message, "remedy": remedy, "exit_code": int(code)})
            return
    with contextlib.suppress(OutputError):
        echo(f"error    {message}", err=True)
        if remedy:
            echo(f"         {remedy}", err=True)


def complain_of_fault(error: Exception, trace: Path | None, as_json: bool) -> None:
    """Say that we failed, and keep the traceback in a file."""
    if trace is None:
        from agents.runs import home

        trace = home() / "fault.txt"
    text = "".join(traceback.format_exception(error))
    try:
        trace.parent.mkdir(parents=True, exist_ok=True)
        trace.write_text(text, encoding="utf-8")
        where = f"The traceback is in {trace}"
    except OSError:
        where = text
    complain(f"torchtpu-agent failed: {type(error).__name__}: {error}", where, Exit.INTERNAL, as_json)


def sized(text: str | None) -> int | None:
    """A size option's bytes."""
    from agents.settings import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise UserError(f"{error}.") from error


def interpreter(text: str | None) -> str | None:
    """The interpreter that --python names, as a path.

    Raises:
        UserError: There is none.
    """
    import shutil

    if text is None:
        return None
    found = shutil.which(str(Path(text).expanduser()))
    if found is None:
        raise UserError(f"There is no interpreter {text}.", "Give a path such as .venv/bin/python.")
    return str(Path(found).absolute())


def commas(values: list[str] | None) -> list[str]:
    """Codes of options that may be repeated or hold several, `A,B`."""
    return [code.strip() for value in values or [] for code in value.split(",") if code.strip()]
