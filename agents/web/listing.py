"""The list of runs: what a row shows, and which rows a filter keeps."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, Field

from agents import runs
from agents.runs import RunFolder
from agents.state import STAGES
from agents.web.started import Started

PAGE = 40


class Rung(BaseModel):
    """A stage's verdict in short."""

    stage: str
    result: str


class Row(BaseModel):
    """A run as the list shows it."""

    id: str
    source: str
    created: str
    status: str
    headline: str = ""
    exit_code: int | None = None
    verdict: str = Field(description="passed, failed, nothing shown, or unfinished")
    entry: str = ""
    rungs: list[Rung] = []

    @property
    def name(self) -> str:
        """The repository in short."""
        return self.source.rstrip("/").rpartition("/")[2].removesuffix(".git") or self.source

    @property
    def when(self) -> str:
        """The time of its start, for people."""
        return datetime.fromisoformat(self.created).strftime("%-d %b %Y, %H:%M")


class Filter(BaseModel):
    """What the list is narrowed to; empty fields keep everything."""

    state: str = ""
    repository: str = ""
    verdict: str = ""
    text: str = ""

    def keeps(self, row: Row) -> bool:
        """Whether a row is shown."""
        words = self.text.lower().split()
        said = f"{row.id} {row.source} {row.entry} {row.headline} {row.status}".lower()
        wanted = ((self.state, row.status), (self.repository, row.source), (self.verdict, row.verdict))
        return all(want in ("", value) for want, value in wanted) and all(word in said for word in words)


def rows(started: Started) -> list[Row]:
    """All runs, newest first."""
    return [row_of(folder, started) for folder in reversed(runs.every())]


def row_of(folder: RunFolder, started: Started) -> Row:
    """A run's row; one that a child of this server has is running, also before the child has taken it."""
    card, status = folder.card, "running" if started.owns(folder.id) else runs.status(folder)
    rungs, entry = _reported(folder) if status == "finished" else ((), "")
    return Row(
        id=card.id, source=card.source, created=card.created, status=status, headline=card.headline,
        exit_code=card.exit_code, verdict=_verdict(status, rungs), entry=entry or _asked(folder),
        rungs=list(rungs) or [Rung(stage=stage, result="not run") for stage in STAGES],
    )  # fmt: skip


def _asked(folder: RunFolder) -> str:
    try:
        return next(iter(folder.request.entries), "")
    except (OSError, ValueError):
        return ""


def _reported(folder: RunFolder) -> tuple[tuple[Rung, ...], str]:
    try:
        seen = folder.report_json.stat()
    except OSError:
        return (), ""
    return _read(folder.report_json, seen.st_mtime_ns, seen.st_size)


@functools.lru_cache(maxsize=10_000)
def _read(path: Path, _changed: int, _size: int) -> tuple[tuple[Rung, ...], str]:
    """Stages and entry of a report; it is read again when its file is another."""
    try:
        report = json.loads(path.read_bytes())
        rungs = tuple(Rung(stage=one["stage"], result=one["result"]) for one in report["verdicts"])
        return rungs, report["entries"][0]["command"] if report["entries"] else ""
    except (OSError, ValueError, KeyError, TypeError):
        return (), ""


def _verdict(status: str, rungs: Sequence[Rung]) -> str:
    if status != "finished":
        return "unfinished"
    if any(rung.result == "fail" for rung in rungs):
        return "failed"
    return "passed" if any(rung.result == "pass" for rung in rungs) else "nothing shown"
