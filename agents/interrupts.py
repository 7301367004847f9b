"""Turns a signal that asks us to stop into a KeyboardInterrupt that cannot get lost."""

from __future__ import annotations

import signal
from types import FrameType

_asked = 0
_closing = False


def listen() -> None:
    """Take Ctrl-C, `kill` and a closed terminal for the same wish; one that is ignored, as under nohup, stays so."""
    global _asked, _closing
    _asked, _closing = 0, False
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
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


def wants_end() -> bool:
    """Whether what asked was `kill` or a closed terminal, which is not about the work at hand but about all of it."""
    return _asked not in (0, signal.SIGINT)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    global _asked
    _asked = number
    if not _closing:
        raise KeyboardInterrupt
