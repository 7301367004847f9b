"""Writes down what a run says of its progress, so that others can follow it while it goes and afterwards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agents.progress import Progress
from agents.runs import now

PROGRESS = "progress.jsonl"
_BETWEEN = 0.3
"""Seconds between two lines of work in the same stage; a step may take a millisecond."""


class Line(BaseModel):
    """One thing said.

    Attributes:
        kind: `working` is overtaken by what comes next, `done` and `note` stay.
    """

    at: str
    kind: Literal["working", "done", "note"]
    stage: str = ""
    text: str


class Recorded:
    """Passes progress on, and appends it to a file.

    Args:
        progress: Who is told too.
        path: The file; one line of JSON for each thing said.
    """

    def __init__(self, progress: Progress, path: Path) -> None:
        self._progress = progress
        self._path = path
        self._last = ("", 0.0)

    def working(self, stage: str, text: str) -> None:
        """See `Progress`."""
        self._progress.working(stage, text)
        now = time.monotonic()
        if self._last[0] != stage or now - self._last[1] >= _BETWEEN:
            self._last = stage, now
            self._write("working", stage, text)

    def done(self, stage: str, text: str) -> None:
        """See `Progress`."""
        self._progress.done(stage, text)
        self._write("done", stage, text)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._progress.note(text)
        self._write("note", "", text)

    def output(self, text: str) -> None:
        """See `Progress`; the program's output is in its own log."""
        self._progress.output(text)

    def close(self) -> None:
        """See `Progress`."""
        self._progress.close()

    def _write(self, kind: str, stage: str, text: str) -> None:
        line = json.dumps({"at": now(), "kind": kind, "stage": stage, "text": text[:4000]})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def lines_of(folder: Path, after: int = 0) -> list[Line]:
    """What was said in a run's folder, without the first `after` lines; a line that is being written is left."""
    try:
        raw = (folder / PROGRESS).read_bytes()
    except OSError:
        return []
    whole = raw[: raw.rfind(b"\n") + 1].splitlines()
    return [Line.model_validate_json(line) for line in whole[after:]]
