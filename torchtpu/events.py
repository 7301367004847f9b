"""What a workload's processes report while they run, as typed records, and the reader of their event files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_LINE = 256 * 1024
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class Event:
    """One report of one process.

    Attributes:
        event: ``start``, ``device``, ``fault``, ``warning``, ``exception``, ``step``, ``stop``, ``ops``, ``note``,
            ``armed``, ``loaded`` or ``end``.
        time: Seconds since the epoch.
        pid: Process id as the process itself sees it (a sandbox has its own).
        rank: Its rank in a distributed run, where it has one.
        data: The other fields.
    """

    event: str
    time: float
    pid: int
    rank: int | None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """One line of a stack; ``file`` is relative to the project where it is inside."""

    file: str
    line: int
    function: str
    source: str = ""


@dataclass(frozen=True)
class WarningEvent:
    """A warning and the user's line it belongs to.

    Attributes:
        kind: ``cpu-fallback``, ``amp-disabled``, ``torchtpu`` or ``other``.
        message: Its text.
        category: Class name of a Python warning, ``native`` for one printed by C++.
        file: The user's file, else the one Python names, else None.
        line: The line in it.
        rank: Rank of the process, where it has one.
    """

    kind: str
    message: str
    category: str
    file: str | None = None
    line: int | None = None
    rank: int | None = None


@dataclass(frozen=True)
class ExceptionEvent:
    """An exception nobody caught.

    Attributes:
        type: Its class, with the module unless that is builtins.
        message: Its text, the middle left out when it is long.
        frames: The user's frames, outermost first.
        where: The innermost frame, whosoever it is.
        causes: The exceptions it came from, innermost last.
        missing: Name of the module an import did not find.
        rank: Rank of the process, where it has one.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    where: Frame | None = None
    causes: tuple[str, ...] = ()
    missing: str | None = None
    rank: int | None = None


def frame(data: Mapping[str, Any]) -> Frame:
    """Reads a frame from its JSON form."""
    return Frame(str(data["file"]), int(data["line"]), str(data["function"]), str(data.get("source", "")))


def exception(event: Event) -> ExceptionEvent:
    """Reads an ``exception`` event."""
    data = event.data
    return ExceptionEvent(
        str(data["type"]),
        str(data["message"]),
        tuple(frame(item) for item in data["frames"]),
        frame(data["where"]) if data.get("where") else None,
        tuple(data.get("causes", ())),
        data.get("missing"),
        event.rank,
    )


def warning(event: Event) -> WarningEvent:
    """Reads a ``warning`` event."""
    data = event.data
    return WarningEvent(data["kind"], data["message"], data["category"], data.get("file"), data.get("line"), event.rank)


def parse(line: bytes) -> Event | None:
    """Reads one line of an event file; None for what is no event, since any process may write there."""
    try:
        data = json.loads(line)
        rank = data.pop("rank", None)
        return Event(
            str(data.pop("event")),
            float(data.pop("time")),
            int(data.pop("pid")),
            None if rank is None else int(rank),
            data,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class EventReader:
    """Reads what the processes append to the files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def read(self) -> Iterator[Event]:
        """Yields the events that are new, those of one read in the order of their times."""
        found = [event for path in sorted(self._folder.glob("*.jsonl")) for event in self._lines(path)]
        yield from sorted(found, key=lambda event: event.time)

    def _lines(self, path: Path) -> Iterator[Event]:
        # Up to where it ends now: a program that floods it must not keep the reader for ever.
        end = path.stat().st_size if path.is_file() else 0
        while self._offsets.get(path, 0) < end and (data := self._unread(path)):
            for line in data.split(b"\n"):
                event = parse(line) if len(line) <= MAX_LINE else None
                if event is not None:
                    yield event

    def _unread(self, path: Path) -> bytes:
        """Returns the next whole lines, or nothing when the file holds no more of them."""
        offset = self._offsets.get(path, 0)
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(_CHUNK)
        complete = data.rfind(b"\n") + 1
        if not complete and len(data) > MAX_LINE:
            complete = len(data)
        self._offsets[path] = offset + complete
        return data[:complete]
