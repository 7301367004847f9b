"""Runs a command of our own as a child: with a time limit, stopped when somebody asks, ended with the worker."""

from __future__ import annotations

import functools
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.bot.closing import Bell
from agents.web import children
from tools.git import die_with_parent

_TICK = 0.5
_PATIENCE = 30.0


class Stopped(Exception):
    """The child was ended before its time; the text says by whom."""


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    output: Path
    errors: Path

    @property
    def said(self) -> str:
        """The end of what it wrote to standard error, or to standard output."""
        for path in (self.errors, self.output):
            text = path.read_bytes()[-3000:].decode("utf-8", "replace").strip()
            if text:
                return text
        return ""


def run(
    arguments: Sequence[str], folder: Path, *, bell: Bell, minutes: float, stop: Callable[[], str],
    tick: Callable[[], None] = lambda: None, name: str = "child",
) -> Ended:  # fmt: skip
    """Run `torchtpu-agent` with arguments.

    Args:
        arguments: Words of its command line; no shell sees them.
        folder: Where its output goes, and where it runs.
        bell: Ends it when the worker ends.
        minutes: Its time limit.
        stop: Who wants it stopped, or nobody.
        tick: Called every now and then.
        name: Of the files with its output.

    Raises:
        Stopped: Somebody asked for it, or the time is up.
        Closing: The worker ends.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ended = Ended(0, folder / f"{name}.out", folder / f"{name}.err")
    with ended.output.open("wb") as output, ended.errors.open("wb") as errors:
        child = children.start(
            "agents.cli", *arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=str(folder),
            preexec_fn=functools.partial(die_with_parent, signal.SIGTERM),
        )  # fmt: skip
        try:
            _watch(child, bell, time.monotonic() + 60 * minutes, stop, tick)
        finally:
            _end(child)
    return Ended(child.returncode, ended.output, ended.errors)


def _watch(
    child: subprocess.Popen[bytes], bell: Bell, until: float, stop: Callable[[], str], tick: Callable[[], None]
) -> None:
    while True:
        try:
            child.wait(_TICK)
        except subprocess.TimeoutExpired:
            bell.wait(0)
        else:
            return
        if who := stop():
            raise Stopped(f"Stopped by {who}.")
        if time.monotonic() > until:
            raise Stopped("Stopped: its time was up.")
        tick()


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that is still there, gently first."""
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGTERM)
    children.see_off(child, _PATIENCE)
