"""The command in a real pseudo-terminal: what is typed, and what is seen until some text appears."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07|\r")


class PseudoTerminal:
    """A child on a terminal of its own.

    Args:
        arguments: Of `torchtpu-agent`.
        cwd: Where it starts.
        env: Further variables.
    """

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._main, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        variables = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONUNBUFFERED": "1", **env}
        root = Path(__file__).resolve().parents[2]
        variables["PYTHONPATH"] = str(root)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agents.cli", *arguments],
            stdin=child, stdout=child, stderr=child, cwd=cwd, env=variables, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )  # fmt: skip
        os.close(child)
        self.seen = ""
        self._mark = 0

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        os.close(self._main)

    def until(self, text: str, seconds: float = 120) -> str:
        """What is seen from the last such text up to this one."""
        end = time.monotonic() + seconds
        while (place := self.seen.find(text, self._mark)) < 0:
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"{text!r} did not come; seen since: {self.seen[self._mark :]!r}")
        part = self.seen[self._mark : place + len(text)]
        self._mark = place + len(text)
        return part

    def _read(self, end: float) -> bool:
        if not select.select([self._main], [], [], max(end - time.monotonic(), 0))[0]:
            return True
        try:
            data = os.read(self._main, 65536)
        except OSError:  # the child has gone, and its side of the terminal with it
            return False
        self.seen += _ESCAPES.sub("", data.decode("utf-8", "replace"))
        return bool(data)

    def type(self, text: str) -> None:
        """Press keys, and Enter behind them."""
        os.write(self._main, text.encode() + b"\r")

    def press(self, key: bytes) -> None:
        """Press one key, such as Ctrl-C (3) or Ctrl-D (4)."""
        os.write(self._main, key)

    def ended(self, seconds: float = 60) -> int:
        """The exit code."""
        end = time.monotonic() + seconds
        while self._read(end) and time.monotonic() < end:
            pass
        return self.process.wait(max(end - time.monotonic(), 1))
