"""The typed results of looking at a repository: findings, skipped files, scans."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import BaseModel, Field


class Grade(StrEnum):
    """How far a rule may go on its own.

    ``SAFE`` fixes are applied, ``UNSAFE`` ones only when the user asks for them,
    ``ADVICE`` is reported and never edited.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    ADVICE = "advice"


class Replacement(BaseModel):
    """One part of a fix: the text from one position up to another, and what goes there.

    Positions are as in ``Finding``.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Finding(BaseModel):
    """A place in the repository that needs a change.

    Lines count from 1 and columns from 1, both in characters; ``end_column`` is exclusive. In a notebook they are
    lines of the cell.
    """

    rule: str
    family: str
    grade: Grade
    path: str = Field(description="POSIX path relative to the scanned root")
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    source: str = Field(description="the source line, without its line ending")
    fixable: bool
    note: str | None = Field(default=None, description="why it is left to a person, or what the fix assumes")
    cell: int | None = Field(default=None, description="code cell of a notebook, counted from 1")
    file_line: int | None = Field(default=None, description="line of the notebook's JSON that holds the cell's line")
    edits: list[Replacement] = Field(default=[], description="what the fix changes; empty in notebooks")


class Skipped(BaseModel):
    """A file that was not examined, and why."""

    path: str
    reason: str
    line: int | None = None


SCHEMA_VERSION: Final = 1
"""Version of the JSON form of ``ScanResult``; raised when a reader of the old form could break."""


class ScanResult(BaseModel):
    """All that one scan saw."""

    schema_version: Literal[1] = SCHEMA_VERSION
    root: str
    files: int = 0
    parsed: int = 0
    findings: list[Finding] = []
    skipped: list[Skipped] = []
