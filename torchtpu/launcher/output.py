"""Takes a workload's output: keeps a bounded log and tail of it, and shows the lines a person wants to see."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from torchtpu import kinds

DEFAULT_LOG = 64 * 1024 * 1024
TAIL = 16 * 1024
MAX_LINE = 16 * 1024
NATIVE_LINES = 30
# Past this many times the limit the output is no use to anyone and its producer is stopped.
FAR_BEYOND = 64
_READ = 256 * 1024


class OutputPump:
    """Reads one pipe on its own thread until it closes.

    Args:
        fd: The pipe; closed at the end.
        log: File that gets the output, up to the limit, and its tail.
        limit: Bytes kept; None is ``DEFAULT_LOG``.
        show: Called with each line, as text with its end, that is not native log noise.
        verbose: Native log lines are shown too.
    """

    def __init__(
        self,
        fd: int,
        log: Path | None,
        limit: int | None,
        show: Callable[[str], None] | None,
        verbose: bool,
    ) -> None:
        self.limit = DEFAULT_LOG if limit is None else limit
        self.stops = limit is not None
        self.total = 0
        self.native: deque[str] = deque(maxlen=NATIVE_LINES)
        self.fatal: list[str] = []
        self.warnings: list[str] = []
        self.failure: BaseException | None = None
        self._fd = fd
        self._log_path = log
        self._show = show
        self._verbose = verbose
        self._tail = bytearray()
        self._shown_tail: deque[str] = deque(maxlen=200)
        self._partial = b""
        self._thread = threading.Thread(target=self._run, name="workload output", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def finish(self, timeout: float) -> None:
        """Waits until the pipe has closed; raises what ``show`` raised."""
        self._thread.join(timeout)
        if self.failure is not None:
            raise self.failure

    @property
    def far_beyond(self) -> bool:
        """Whether so much was printed that the workload should be stopped."""
        return self.stops and self.total > FAR_BEYOND * self.limit

    @property
    def truncated(self) -> bool:
        """Whether the log leaves something out."""
        return self.total > self.limit

    def tail(self) -> str:
        """Returns the last lines that were the program's own."""
        return "".join(list(self._shown_tail))[-TAIL:]

    def _run(self) -> None:
        log: BinaryIO | None = None
        try:
            log = self._log_path.open("wb") if self._log_path else None
            while data := os.read(self._fd, _READ):
                self._take(data, log)
            self._lines(bytes(self._tail))
            if self._partial:
                self._line(self._partial)
            if log is not None and self.truncated:
                left_out = self.total - self.limit - len(self._tail)
                log.write(b"\n[... %d bytes left out ...]\n" % max(left_out, 0) + bytes(self._tail))
        except BaseException as error:  # noqa: BLE001  handed to the launching thread, which raises it
            self.failure = error
        finally:
            os.close(self._fd)
            if log is not None:
                log.close()

    def _take(self, data: bytes, log: BinaryIO | None) -> None:
        kept = data[: max(self.limit - self.total, 0)]
        self.total += len(data)
        if log is not None and kept:
            log.write(kept)
            log.flush()
        self._lines(kept)
        # Splitting a gigabyte into lines costs minutes: past the limit only the very end is looked at.
        beyond = data[len(kept) :]
        if beyond:
            self._tail = (self._tail + beyond)[-TAIL:]

    def _lines(self, data: bytes) -> None:
        lines = (self._partial + data).splitlines(keepends=True)
        self._partial = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        for line in lines:
            self._line(line)
        if len(self._partial) > MAX_LINE:
            self._line(self._partial)
            self._partial = b""

    def _line(self, raw: bytes) -> None:
        text = raw.decode("utf-8", "replace")
        severity = kinds.native_severity(text.rstrip("\r\n"))
        if severity is None:
            self._shown_tail.append(text[-MAX_LINE:])
        else:
            self._native(text.rstrip("\r\n"), severity)
        if self._show is not None and (severity is None or self._verbose) and not self.truncated:
            self._show(text)

    def _native(self, line: str, severity: str) -> None:
        if severity != "I":
            self.native.append(line)
        if severity == "F" and len(self.fatal) < NATIVE_LINES:
            self.fatal.append(line)
        message = kinds.native_warning(line)
        if message and message not in self.warnings and len(self.warnings) < NATIVE_LINES:
            self.warnings.append(message)
