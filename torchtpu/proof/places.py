"""Finds the user's line that is running, cheaply enough to be asked at every draw."""

from __future__ import annotations

import sys
from types import FrameType

from torchtpu.inject import frames

_names: dict[str, str | None] = {}


def _shown(file: str) -> str | None:
    """Returns a file's name as reports show it; None for one that is not the user's."""
    if file not in _names:
        _names[file] = str(frames.describe(file, 0, "")["file"]) if frames.is_users(file) else None
    return _names[file]


def users_line() -> str:
    """Returns ``file:line`` of the innermost frame that is the user's; empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = _shown(frame.f_code.co_filename)
        if name is not None:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
