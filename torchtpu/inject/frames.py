"""Picks the user's own lines out of a stack: files of the project, not of installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

ROOT_VARIABLE = "TORCHTPU_ROOT"
MAX_FRAMES = 20
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OURS = os.path.realpath(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def roots() -> list[str]:
    """Returns the folders whose files are the user's: the project's, and the main script's."""
    found = [os.environ.get(ROOT_VARIABLE) or os.getcwd()]
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script:
        found.append(os.path.dirname(os.path.abspath(script)))
    return [os.path.realpath(folder) for folder in found]


def is_users(file: str) -> bool:
    """Says whether a source file belongs to the user's project."""
    if file.startswith("<frozen "):
        return False  # the interpreter's own, such as the machinery of imports
    path = os.path.realpath(file)
    if any(part in path for part in _INSTALLED) or path.startswith((_OURS, os.path.realpath(sys.prefix) + os.sep)):
        return False
    return any(path.startswith(root.rstrip(os.sep) + os.sep) for root in roots())


def describe(file: str, line: int | None, function: str) -> dict[str, Any]:
    """Returns one frame as the event carries it, its file relative to the project where it is inside."""
    import linecache  # only a process with something to report pays for it

    root = roots()[0]
    path = os.path.realpath(file)
    shown = os.path.relpath(path, root) if path.startswith(root.rstrip(os.sep) + os.sep) else file
    source = linecache.getline(file, line or 0).strip()[:500]
    return {"file": shown, "line": line or 0, "function": function, "source": source}


def of_traceback(traceback: TracebackType | None) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Returns the user's frames of a traceback, outermost first, and the innermost frame whosoever it is."""
    entries = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        entries.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    entries = [entry for entry in entries if not os.path.realpath(entry[0]).startswith(_OURS)]
    users = [describe(*entry) for entry in _users(entries)][-MAX_FRAMES:]
    return users, describe(*entries[-1]) if entries else None


def _users(entries: Iterable[tuple[str, int, str]]) -> Iterable[tuple[str, int, str]]:
    return (entry for entry in entries if is_users(entry[0]))


def caller() -> dict[str, Any] | None:
    """Returns the innermost frame of the running thread that is the user's, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return describe(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
