"""Reports Python warnings with the user's line, also those the program's own filters hide."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

from torchtpu import kinds
from torchtpu.inject import frames, imports, writer

MAX_EVENTS = 200
# Modules whose warnings decide whether a run counts. Programs commonly silence all warnings; for these modules
# they are seen before the filters. `warnings.warn` itself is left alone: torch.compile knows it by identity.
WATCHED = (
    "torch.amp.autocast_mode",
    "torch.amp.grad_scaler",
    "torch.cuda.amp.autocast_mode",
    "torch.cuda.amp.grad_scaler",
    "torch_tpu._internal.utils.tt_warnings",
)
_seen: set[tuple[str, str, int]] = set()


def report(message: str, category: str, file: str = "", line: int = 0) -> None:
    """Writes one warning event, once for each message and place."""
    user = frames.caller()
    place = (message, user["file"] if user else file, user["line"] if user else line)
    if place in _seen or len(_seen) >= MAX_EVENTS:
        return
    _seen.add(place)
    writer.write(
        "warning",
        kind=kinds.warning_kind(message),
        message=writer.shorten(message, 1000),
        category=category,
        file=place[1] or None,
        line=place[2] or None,
        users=user is not None,
    )


class _Warnings(ModuleType):
    """Stands for the warnings module inside a watched module."""

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    @staticmethod
    def warn(message: Any, category: Any = None, stacklevel: int = 1, *rest: Any, **named: Any) -> None:
        kind = type(message) if isinstance(message, Warning) else category or UserWarning
        report(str(message), kind.__name__)
        warnings.warn(message, category, stacklevel + 1, *rest, **named)


def _watch(module: ModuleType) -> None:
    if getattr(module, "warnings", None) is warnings:
        module.warnings = _Warnings("warnings")  # type: ignore[attr-defined]


def install() -> None:
    """Starts reporting the warnings of this process."""
    shown = warnings._showwarnmsg  # type: ignore[attr-defined]

    def showwarnmsg(message: Any) -> None:
        report(str(message.message), message.category.__name__, message.filename, message.lineno)
        shown(message)

    warnings._showwarnmsg = showwarnmsg  # type: ignore[attr-defined]
    for name in WATCHED:
        imports.after_import(name, _watch)
