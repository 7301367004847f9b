"""What a language model in a chat may do without being asked about it."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Approval modes."""

    ASK = "ask"
    AUTO_SAFE = "auto-safe"
    READ_ONLY = "read-only"
