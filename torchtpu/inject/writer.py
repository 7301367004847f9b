"""Writes events as JSON lines into the folder the parent watches, one file a process."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

FOLDER_VARIABLE = "TORCHTPU_EVENTS"
MAX_TEXT = 4000
# What a result cannot do without is written later when it cannot be written now.
_KEPT = frozenset(["start", "device", "fault", "exception", "stop", "ops"])
_MAX_UNSENT = 50
# Read once: a program may clear its environment.
_folder = os.environ.get(FOLDER_VARIABLE)
_unsent: list[bytes] = []


def folder() -> str | None:
    """Returns the folder the parent watches; None in a process that nobody watches."""
    return _folder


def rank() -> int | None:
    """Returns the process's rank: from torch.distributed once it is initialised, else from RANK."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
        text = os.environ.get("RANK", "")
        return int(text) if text else None
    except (AttributeError, RuntimeError, ValueError):  # half-imported, or a process group being torn down
        return None


def shorten(text: str, limit: int = MAX_TEXT) -> str:
    """Returns the text, its middle left out when it is long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"


def write(event: str, **fields: Any) -> None:
    """Appends one event; a folder that is gone or full is no reason to disturb the program."""
    if not _folder:
        return
    record = {"event": event, "time": time.time(), "pid": os.getpid(), "rank": rank(), **fields}
    line = json.dumps(record, default=str).encode("utf-8", "replace") + b"\n"
    try:
        _append(os.path.join(_folder, f"{os.getpid()}.jsonl"), line)
    except OSError:
        # Out of descriptors or of space: the program goes on, and what matters waits for the next event.
        if event in _KEPT and len(_unsent) < _MAX_UNSENT:
            _unsent.append(line)


def _append(path: str, line: bytes) -> None:
    # Opened anew each time: a daemon closes every descriptor, and the number may then be another file's.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while _unsent:
            _write_whole(fd, _unsent[0])
            del _unsent[0]
        _write_whole(fd, line)
    finally:
        os.close(fd)


def _write_whole(fd: int, line: bytes) -> None:
    # The line end before it closes a line that was cut, by a full disk or a death of an earlier program of this id.
    data = b"\n" + line
    while data:
        data = data[os.write(fd, data) :]


def forget_unsent() -> None:
    """Leaves what could not be written to the process that meant to write it; for a forked child."""
    _unsent.clear()
