"""The typed results of looking at a repository: findings, skipped files, scans."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field


class Grade(StrEnum):
    """How far a rule may go on its own.

    ``SAFE`` fixes are applied, ``UNSAFE`` ones only when the user asks for them,
    ``ADVICE`` is reported and never edited.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    ADVICE = "advice"


class Finding(BaseModel):
    """A place in the repository that needs a change.

    Lines count from 1 and columns from 1, both in characters; ``end_column`` is exclusive.
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


class Skipped(BaseModel):
    """A file that was not examined, and why."""

    path: str
    reason: str
    line: int | None = None


class ScanResult(BaseModel):
    """All that one scan saw."""

    root: str
    files: int = 0
    parsed: int = 0
    findings: list[Finding] = []
    skipped: list[Skipped] = []
