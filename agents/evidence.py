"""Gathers what there is to explain: a log, standard input, a run of the store, or a command run now."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import runs
from tools import run as runner
from tools.commands import Command, parse
from tools.errors import UserError
from tools.log_text import read_text
from tools.run import RunOutput

LARGEST = 4 * 2**20
"""Bytes of a log that are read, from its end: the end is where the cause is."""


@dataclass(frozen=True)
class Evidence:
    """One thing to explain.

    Attributes:
        origin: What to call it.
        run: What is left of the run.
        repository: Where its code is, if that is known.
    """

    origin: str
    run: RunOutput
    repository: Path | None = None


def from_text(text: str, origin: str) -> Evidence:
    """Pasted text.

    Raises:
        UserError: There is none.
    """
    if not text.strip():
        raise UserError(f"There is nothing to explain in {origin}.", "Give the output of the program that failed.")
    return Evidence(origin, read_text(text))


def from_log(path: Path) -> Evidence:
    """A file with what a program printed.

    Raises:
        UserError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - LARGEST, 0))
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "Name a readable log.") from error
    return from_text(text, str(path))


def from_run(run_id: str) -> list[Evidence]:
    """The runs of a migration's last attempt, with the private tree they ran.

    Raises:
        UserError: There is no such migration, or it has run nothing.
    """
    folder = runs.find(run_id)
    results = sorted(folder.path.glob("run-*-*.json"), key=_attempt)
    if not results:
        remedy = f"Go on with: torchtpu-agent {folder.command} --resume {run_id}"
        raise UserError(f"Run {run_id} has run no program yet.", remedy)
    last = _attempt(results[-1])[0]
    return [_of_result(path, run_id, folder) for path in results if _attempt(path)[0] == last]


def _attempt(path: Path) -> tuple[int, int]:
    found = re.fullmatch(r"run-(\d+)-(\d+)\.json", path.name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _of_result(path: Path, run_id: str, folder: runs.RunFolder) -> Evidence:
    try:
        output = RunOutput.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise runs.is_damaged(folder) from error
    log = path.with_suffix(".log")
    if log.is_file():
        output.output_tail = log.read_bytes()[-LARGEST:].decode("utf-8", "replace")
    tree = folder.tree if folder.tree.is_dir() else None
    return Evidence(f"run {run_id}, program {_attempt(path)[1]}", output, tree)


def from_command(
    request: runner.RunRequest, words: Sequence[str], on_output: Callable[[str], None] | None = None
) -> Evidence:
    """A program, run now under the launcher."""
    output = runner.run(request, on_output=on_output)
    return Evidence(shlex.join(words), output, request.cwd)


def kind_of(words: Sequence[str]) -> str:
    """What a command line names: `input`, `log`, `run` or `command`.

    One word that is a file and not a program is a log; one that is the id of a run is that run.

    Raises:
        UserError: One word that is nothing of it.
    """
    if not words or list(words) == ["-"]:
        return "input"
    if len(words) > 1:
        return "command"
    word = words[0]
    path = Path(word)
    if path.is_file() and not path.stat().st_mode & 0o111:
        return "log"
    if (runs.home() / "runs" / word / "run.json").is_file():
        return "run"
    if path.is_file() or shutil.which(word):
        return "command"
    raise UserError(
        f"There is no log, run or program {word}.",
        "Give a file with the output, the id of a run, or a command after two dashes: -- python train.py",
    )


def parsed(words: Sequence[str]) -> Command:
    """The words as a command."""
    return parse(shlex.join(words))
