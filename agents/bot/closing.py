"""How a worker that is asked to end leaves its jobs: unrecorded, so that they are gone on with."""

from __future__ import annotations

import threading


class Closing(BaseException):
    """The worker ends. No `Exception`: that would be recorded as the job's own end."""


class Bell:
    """Rung when the worker is to end; whoever waits, waits by it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        """Let everybody stop."""
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Wait.

        Raises:
            Closing: The worker ends.
        """
        if self._event.wait(max(0.0, seconds)):
            raise Closing
