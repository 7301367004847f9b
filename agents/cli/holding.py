"""Holds a run while a command works on it: its lock, its status, and what to say when the work is cut off."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from agents import interrupts
from agents.cli.common import complain_of_fault, console, full_disk, is_full_disk
from agents.cli.output import OutputError, echo
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from agents.context import Context
    from agents.runs import RunFolder

Work = Callable[["Context"], Exit]


def hold(
    folder: RunFolder, work: Work, *, as_json: bool, verbose: bool = False, yes: bool = False, resumed: bool = False
) -> Exit:
    """Work on a run to its end, and leave it so that it can be gone on with whatever happens.

    Args:
        folder: The run.
        work: Does it, and says how the command ends.
        as_json: Say nothing but one JSON document.
        verbose: Let the program's output through.
        yes: The plan is approved.
        resumed: It was begun before.
    """
    try:
        with folder.lock():
            return _hold(folder, work, as_json, verbose, yes, resumed)
    except (KeyboardInterrupt, typer.Abort) as error:
        interrupts.closing()
        # A run that nobody holds and that has not ended counts as interrupted, whatever its card says.
        raise _interrupted(folder) from error


def _hold(folder: RunFolder, work: Work, as_json: bool, verbose: bool, yes: bool, resumed: bool) -> Exit:
    from agents.context import Context
    from agents.helper import helper_of
    from agents.progress import OnConsole, Silent
    from agents.record import PROGRESS, Recorded
    from agents.runs import is_damaged

    progress = Recorded(Silent() if as_json else OnConsole(console(), verbose), folder.path / PROGRESS)
    helper = helper_of(folder.request, progress)
    context = Context(folder=folder, progress=progress, verbose=verbose, assume_yes=yes, model=helper)
    try:
        if folder.card.status == "finished":
            return _tell_again(folder, context, as_json)
        if resumed:
            progress.done("resume", f"run {folder.id} of {folder.card.source}")
        folder.update(status="running")
        return work(context)
    except (KeyboardInterrupt, typer.Abort) as error:
        interrupts.closing()
        folder.update(status="interrupted")
        raise _interrupted(folder) from error
    except OutputError as error:
        raise _unheard(folder, error) from error
    except UserError:
        folder.update(status="failed")
        _forget_if_nothing_was_done(folder)
        raise
    except Exception as error:  # whatever it is, the run's status and its traceback are kept
        if is_full_disk(error):
            # No room for a new status either; a run that says it is running and that nobody holds was interrupted.
            raise UserError(*full_disk(_how_to_resume(folder)), Exit.ENVIRONMENT) from error
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            raise is_damaged(folder) from error
        folder.update(status="failed", exit_code=int(Exit.INTERNAL))
        complain_of_fault(error, folder.trace, as_json)
        return Exit.INTERNAL
    finally:
        progress.close()


def _interrupted(folder: RunFolder) -> UserError:
    return UserError("Interrupted.", _how_to_resume(folder), Exit.INTERRUPTED)


def _unheard(folder: RunFolder, error: OutputError) -> UserError:
    """What to say where the output cannot be written: the work goes on from where it stopped, or is done."""
    if folder.card.status == "finished":
        return UserError(error.message, f"The work is done; its report is {folder.report}", error.exit_code)
    if folder.card.status == "running":
        folder.update(status="interrupted")
    return UserError(error.message, _how_to_resume(folder), error.exit_code)


def _how_to_resume(folder: RunFolder) -> str:
    return f"Go on with: torchtpu-agent {folder.command} --resume {folder.id}"


def _forget_if_nothing_was_done(folder: RunFolder) -> None:
    """A run that ended while it looked at its input has nothing that anybody would want to keep."""
    from agents.runs import remove_tree

    if not folder.findings.exists():
        remove_tree(folder.path)


def _tell_again(folder: RunFolder, context: Context, as_json: bool) -> Exit:
    card = folder.card
    if as_json:
        echo(folder.report_json.read_text(encoding="utf-8"))
    context.progress.done("report", f"run {folder.id} is finished: {folder.report}")
    return Exit(card.exit_code or 0)
