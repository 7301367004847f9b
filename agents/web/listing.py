"""The list of runs: what a row shows, and which rows a filter keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from agents import runs
from agents.runs import RunFolder
from agents.state import STAGES

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


def rows() -> list[Row]:
    """All runs, newest first."""
    return [row_of(folder) for folder in reversed(runs.every())]


def row_of(folder: RunFolder) -> Row:
    """A run's row."""
    card, status = folder.card, runs.status(folder)
    report = _report(folder) if status == "finished" else {}
    rungs = [Rung(stage=one["stage"], result=one["result"]) for one in report.get("verdicts", [])]
    try:
        entries = report.get("entries") or [{"command": text} for text in folder.request.entries]
    except (OSError, ValueError):
        entries = []
    return Row(
        id=card.id, source=card.source, created=card.created, status=status, headline=card.headline,
        exit_code=card.exit_code, verdict=_verdict(status, rungs), entry=entries[0]["command"] if entries else "",
        rungs=rungs or [Rung(stage=stage, result="not run") for stage in STAGES],
    )  # fmt: skip


def _report(folder: RunFolder) -> dict[str, Any]:
    try:
        found = json.loads(folder.report_json.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _verdict(status: str, rungs: Sequence[Rung]) -> str:
    if status != "finished":
        return "unfinished"
    if any(rung.result == "fail" for rung in rungs):
        return "failed"
    return "passed" if any(rung.result == "pass" for rung in rungs) else "nothing shown"
