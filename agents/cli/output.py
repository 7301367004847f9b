"""Prints, and says so where what is printed cannot be written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tools.errors import Exit, UserError


class OutputError(UserError):
    """What is printed cannot be written, which says nothing about the work itself."""


class ReaderGone(OutputError):
    """The reader of a pipe has closed it, as `| head` does."""


@contextmanager
def writing(err: bool = False) -> Iterator[None]:
    """Turn a failure to write to standard output, or to standard error, into one that says so.

    Raises:
        OutputError: It cannot be written.
    """
    name = "Standard error" if err else "Standard output"
    try:
        yield
    except BrokenPipeError as error:
        _mute(err)
        raise ReaderGone("The reader of the output went away.", exit_code=Exit.INTERRUPTED) from error
    except OSError as error:
        _mute(err)
        message = f"{name} cannot be written: {error.strerror or error}."
        raise OutputError(message, "Write somewhere else.", Exit.ENVIRONMENT) from error


_lost = False


def is_lost() -> bool:
    """Whether standard output could not be written before, and goes nowhere since."""
    return _lost


def _mute(err: bool) -> None:
    """Send what is still to be flushed nowhere, or the end of the process would fail by it once more."""
    global _lost
    _lost = _lost or not err
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (sys.stderr if err else sys.stdout).fileno())
    os.close(nowhere)


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print a text.

    Raises:
        OutputError: It cannot be written.
    """
    with writing(err):
        typer.echo(text, nl=nl, err=err)


def print_json(value: object) -> None:
    """Print one JSON document.

    Raises:
        OutputError: It cannot be written.
    """
    echo(json.dumps(value, indent=1, default=str, ensure_ascii=False))
