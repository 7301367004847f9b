"""Turns a signal that asks us to stop into a KeyboardInterrupt that cannot get lost."""

from __future__ import annotations

import signal
import time
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_asked = 0
_closing = False
_since = 0.0
_PATIENCE = 5.0
"""Seconds in which a second Ctrl-C is the same wish: what the first began to stop is being ended."""


def listen() -> None:
    """Take Ctrl-C, `kill` and a closed terminal for the same wish; one that is ignored, as under nohup, stays so."""
    global _asked, _closing
    _asked, _closing = 0, False
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def check() -> None:
    """Stop now if we were asked to before.

    Python drops an exception that a signal raises inside a finalizer or a weak reference's callback.

    Raises:
        KeyboardInterrupt: A signal asked us to stop.
    """
    if _asked:
        raise KeyboardInterrupt


def closing() -> None:
    """Nothing more can be stopped: what is left is to say how to go on, which a second Ctrl-C shall not cut off."""
    global _closing
    _closing = True


def ended() -> None:
    """The command is over, with the exit code of an interrupted one; Python, on its way out, would die of the next."""
    if _asked:
        for name in _SIGNALS:
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, signal.SIG_IGN)


def wants_end() -> bool:
    """Whether what asked was `kill` or a closed terminal, which is not about the work at hand but about all of it."""
    return _asked not in (0, signal.SIGINT)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    global _asked, _since
    again = _asked != 0 and time.monotonic() - _since < _PATIENCE
    _asked = number
    if not _closing and not again:
        _since = time.monotonic()
        raise KeyboardInterrupt
