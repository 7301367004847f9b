"""Reports uncaught exceptions with the user's frames, and lets a dying or hanging process show its stacks."""

from __future__ import annotations

import atexit
import faulthandler
import fcntl
import os
import signal
import sys
import threading
from types import TracebackType
from typing import Any

from torchtpu.inject import frames, writer

# A real-time signal, so that none of the program's own (USR1 of batch systems and the like) is taken.
DUMP_SIGNAL = signal.SIGRTMAX - 5
MAX_CHAIN = 3
_reported: set[int] = set()


def _chain(error: BaseException) -> list[str]:
    causes: list[str] = []
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while inner is not None and len(causes) < MAX_CHAIN:
        causes.append(writer.shorten(f"{type(inner).__name__}: {inner}", 500))
        inner = inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)
    return causes


def _syntax_frame(error: SyntaxError) -> list[dict[str, Any]]:
    if not error.filename or not frames.is_users(error.filename):
        return []
    return [frames.describe(error.filename, error.lineno, "<module>")]


def report(error: BaseException, traceback: TracebackType | None = None, **fields: Any) -> None:
    """Writes one exception event; the same exception object is written once."""
    if isinstance(error, SystemExit) or id(error) in _reported:
        return
    _reported.add(id(error))
    users, where = frames.of_traceback(traceback or error.__traceback__)
    if isinstance(error, SyntaxError):
        users += _syntax_frame(error)
    kind = type(error)
    prefix = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    writer.write(
        "exception",
        type=f"{prefix}{kind.__qualname__}",
        message=writer.shorten(str(error)),
        frames=users,
        where=where,
        causes=_chain(error),
        missing=error.name if isinstance(error, ModuleNotFoundError) else None,
        **fields,
    )


def _hook_exceptions(role: str) -> None:
    previous = sys.excepthook
    previous_thread = threading.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        report(error, traceback, role=role)
        previous(kind, error, traceback)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            report(arguments.exc_value, arguments.exc_traceback, role="thread")
        previous_thread(arguments)

    sys.excepthook = excepthook
    threading.excepthook = thread_hook


def _arm() -> None:
    folder = writer.folder()
    if not folder:
        return
    fd = os.open(os.path.join(folder, f"{os.getpid()}.stacks"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    # A high number stays clear of programs that close and reuse the low descriptors.
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
    os.close(fd)
    faulthandler.enable(high)
    faulthandler.register(DUMP_SIGNAL, high, all_threads=True)
    writer.write("armed", signal=int(DUMP_SIGNAL))


def _arm_child() -> None:
    try:
        _arm()
    except (OSError, RuntimeError, ValueError):  # a forked child goes on without stacks
        return


def install(role: str) -> None:
    """Hooks uncaught exceptions and arms the stack dumps in this process and those it forks."""
    _hook_exceptions(role)
    _arm_child()
    os.register_at_fork(after_in_child=_arm_child)
    atexit.register(writer.write, "end")
