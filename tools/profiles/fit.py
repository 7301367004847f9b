"""Looks for what makes a step fit that does not: each proposal is recorded, lowered and compiled, none is guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pydantic import BaseModel

from tools.profile import ProfileOutput
from tools.profiles.text import size

_BATCH = re.compile(r"(?P<name>--?[\w.-]*batch[\w.-]*[= ])(?P<size>\d+)(?=\s|$)", re.IGNORECASE)


class Attempt(BaseModel):
    """One proposal and what the compiler says of it."""

    command: str
    outcome: str
    peak: float | None = None
    seconds: float | None = None


def batch_in(command: str) -> tuple[int, Callable[[int], str]] | None:
    """The batch that a command names, and what writes the command with another; None where it names none."""
    match = _BATCH.search(command)
    if match is None:
        return None
    before, after = command[: match.start("size")], command[match.end("size") :]
    return int(match["size"]), lambda size: f"{before}{size}{after}"


def smaller_batches(command: str) -> Iterator[str]:
    """The command with the number of its batch option halved, again and again down to one."""
    found = batch_in(command)
    if found is None:
        return
    size, rewritten = found
    while size > 1:
        size //= 2
        yield rewritten(size)


def make_fit(command: str, profiled: Callable[[str], ProfileOutput]) -> list[Attempt]:
    """Try smaller batches until one fits.

    Args:
        command: The command whose step does not fit.
        profiled: Profiles another command in its place.

    Returns:
        What was tried, in order; the last fits, if one does. Empty where the command has no option for the batch.
    """
    tried = []
    for other in smaller_batches(command):
        output = profiled(other)
        time = output.profile["time"] or {}
        peak = output.profile["memory"]["peak"]
        tried.append(Attempt(command=other, outcome=output.outcome, peak=peak, seconds=time.get("seconds")))
        if output.outcome != "out-of-memory":
            break
    return tried


def attempts_text(output: ProfileOutput) -> Iterator[str]:
    """What was tried, as text."""
    if output.outcome != "out-of-memory":
        return
    yield ""
    if not output.attempts:
        yield "to fit   nothing was tried: the command has no option with `batch` in its name and a number above 1"
    for tried in output.attempts:
        verdict = f"takes {size(tried['peak'])}" if tried["outcome"] == "ok" else "does not fit"
        verdict = verdict if tried["outcome"] in ("ok", "out-of-memory") else f"ended with {tried['outcome']}"
        yield f"to fit   {tried['command']}: {verdict}, by the compiler"
