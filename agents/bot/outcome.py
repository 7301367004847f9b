"""What a job came to, before anything of it is written to GitHub; kept in the database between the two."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from agents.bot.store import Result

Conclusion = Literal["success", "failure", "neutral"]


class PullPlan(BaseModel):
    """A draft pull request to open for a branch that was pushed."""

    branch: str
    base: str
    title: str
    text: str


class CheckPlan(BaseModel):
    """A check run to write."""

    sha: str
    name: str
    conclusion: Conclusion
    title: str
    summary: str
    annotations: list[dict[str, Any]] = []
    external: str


class SarifPlan(BaseModel):
    """SARIF to upload."""

    sha: str
    ref: str
    document: str


class Outcome(BaseModel):
    """The whole of it.

    Attributes:
        text: What the job's comment says at the end; empty for a job that has no comment.
    """

    result: Result
    headline: str
    text: str = ""
    pull: PullPlan | None = None
    check: CheckPlan | None = None
    sarif: SarifPlan | None = None
