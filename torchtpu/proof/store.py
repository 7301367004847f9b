"""Writes the records of one process as JSON lines, within a limit of bytes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from torchtpu.inject import writer

MOST_BYTES = 512 * 2**20
VERSION = 1


class Store:
    """One file `<rank>.jsonl` a process, or `<rank>-<n>.jsonl` where another process of that rank was first.

    The file is made with the first record: a process that computes nothing leaves none.
    """

    def __init__(self, folder: Path, header: dict[str, Any], limit: int = MOST_BYTES) -> None:
        self._folder = folder
        self._header = header
        self._limit = limit
        self._fd: int | None = None
        self._pid = os.getpid()
        self.bytes = 0
        self.lost = 0

    @property
    def mine(self) -> bool:
        """Whether this is the process that was told to record, and not one it forked."""
        return self._pid == os.getpid()

    def write(self, kind: str, **fields: Any) -> None:
        """Appends a record; one that is beyond the limit is counted instead."""
        if not self.mine:
            return
        if self._fd is None:
            self._fd = self._open()
            facts = {"version": VERSION, "pid": self._pid, "rank": writer.rank(), "argv": sys.orig_argv[:20]}
            self._append(_line({"kind": "header", **facts, **self._header}))
        line = _line({"kind": kind, **fields})
        if self.bytes + len(line) > self._limit and kind not in ("end", "step", "loss"):
            self.lost += 1
            return
        self._append(line)

    def _append(self, line: bytes) -> None:
        assert self._fd is not None
        self.bytes += len(line)
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view) :]

    def _open(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        rank = writer.rank() or 0
        for number in range(1, 10_000):
            path = self._folder / (f"{rank}.jsonl" if number == 1 else f"{rank}-{number}.jsonl")
            try:
                return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except FileExistsError:
                continue
        raise OSError(f"{self._folder} is full of records")


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), default=str).encode() + b"\n"
