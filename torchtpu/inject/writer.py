"""Writes events as JSON lines into the folder the parent watches, one file a process."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

FOLDER_VARIABLE = "TORCHTPU_EVENTS"
MAX_TEXT = 4000


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
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    record = {"event": event, "time": time.time(), "pid": os.getpid(), "rank": rank(), **fields}
    line = json.dumps(record, default=str).encode("utf-8", "replace") + b"\n"
    # Opened anew each time: a daemon closes every descriptor, and the number may then be another file's.
    try:
        fd = os.open(
            os.path.join(folder, f"{os.getpid()}.jsonl"),
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
    except OSError:
        return
    try:
        os.write(fd, line)
    except OSError:
        return  # the event is lost, the program goes on
    finally:
        os.close(fd)
