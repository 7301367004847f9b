"""The log of a suite: one JSON line a case, so that a run that was ended goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Log:
    """A file of JSON lines that grows by whole lines.

    Args:
        path: The file; it and its folder are made when the first line comes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The lines so far; one that was cut off by a kill is passed over."""
        if not self.path.is_file():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def add(self, record: dict[str, Any]) -> None:
        """Append a case."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            torn = file.read() not in (b"", b"\n")
            file.write(b"\n" * torn + json.dumps(record).encode() + b"\n")
