"""Explains a failure: ranked causes with their evidence and places in the code, or what is near when none fits."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pydantic import BaseModel, Field

from tools.diagnose import Cause, diagnose
from tools.remedies import Remedy, preview
from tools.run import RunOutput
from tools.search import SearchHit, search

MOST_CAUSES = 5
_GOOD = ("completed", "stopped-at-steps")


class RankedCause(Cause):
    """A cause with its place in the repository and a word on whether it still holds."""

    remedy_here: Remedy = Field(default=Remedy(), description="what rules find in the repository that was named")
    note: str = ""


class Explanation(BaseModel):
    """What is known of a failure."""

    origin: str = Field(description="where the evidence comes from")
    outcome: str
    summary: str = Field(default="", description="how it ended, in a sentence")
    where: str | None = Field(default=None, description="the user's line that failed")
    causes: list[RankedCause] = []
    related: list[SearchHit] = Field(default=[], description="entries with like words; looked up where no cause fits")
    log: str | None = None

    @property
    def ended_well(self) -> bool:
        """Whether there was nothing to explain."""
        return self.outcome in _GOOD and not self.causes


def explain(run: RunOutput, origin: str, repository: Path | None = None, refuted: Collection[str] = ()) -> Explanation:
    """Name the causes of a failure.

    Args:
        run: What is left of the run.
        origin: What to call it.
        repository: Where the code is, to find the causes in it.
        refuted: Entries whose probe no longer fails here; they are ranked behind the others.
    """
    found = sorted(diagnose(run)[:MOST_CAUSES], key=lambda cause: cause.entry in refuted)
    causes = [_ranked(cause, repository, cause.entry in refuted) for cause in found]
    summary = run.explanation or _said(run)
    related = search(summary or run.output_tail[-2000:], 3).hits if not causes and run.outcome not in _GOOD else []
    return Explanation(
        origin=origin, outcome=run.outcome, summary=summary, where=_where(run), causes=causes, related=related,
        log=run.log,
    )  # fmt: skip


def _ranked(cause: Cause, repository: Path | None, refuted: bool) -> RankedCause:
    return RankedCause(
        **cause.model_dump(),
        remedy_here=preview(repository, cause.rules) if repository else Remedy(),
        note="its probe no longer fails on this machine, so it may not be the cause" if refuted else "",
    )


def _said(run: RunOutput) -> str:
    if run.exception:
        return f"{run.exception.get('type')}: {run.exception.get('message')}"[:600]
    return f"It was ended by {run.signal}." if run.signal else ""


def _where(run: RunOutput) -> str | None:
    frames = (run.exception or {}).get("frames") or []
    return f"{frames[-1].get('file')}:{frames[-1].get('line')}" if frames else None


def render(explanation: Explanation) -> str:
    """The explanation as text for a person."""
    lines = [f"{'from':<9}{explanation.origin}"]
    if explanation.summary:
        lines.append(f"{'end':<9}{' '.join(explanation.summary.split())[:400]}")
    if explanation.where and explanation.where not in explanation.summary:
        lines.append(f"{'where':<9}{explanation.where}")
    for number, cause in enumerate(explanation.causes, 1):
        lines += ["", *_cause_lines(number, cause)]
    if not explanation.causes:
        lines += ["", *_nothing(explanation)]
    return "\n".join(lines)


def _cause_lines(number: int, cause: RankedCause) -> list[str]:
    said = f"{number}. {cause.title} ({cause.confidence}; {cause.owner}; {cause.entry})"
    lines = [
        said,
        *(f"   evidence {line}" for line in cause.lines),
        f"   cause    {cause.cause}",
        f"   remedy   {cause.remedy}",
    ]
    if cause.note:
        lines.append(f"   note     {cause.note}")
    if cause.rules:
        lines.append(f"   rules    {', '.join(cause.rules)}")
    lines += [f"   found    {place}" for place in cause.remedy_here.places]
    if cause.remedy_here.patch:
        lines += ["   patch", *(f"     {line}" for line in cause.remedy_here.patch.splitlines())]
    return lines


def _nothing(explanation: Explanation) -> list[str]:
    if explanation.outcome in _GOOD:
        return ["It ended well, and nothing known to be wrong shows in it."]
    lines = ["No known cause fits what it shows."]
    if explanation.related:
        lines += ["Entries with like words, which may have nothing to do with it:"]
        lines += [f"  {hit.id:<26} {hit.title}" for hit in explanation.related]
    return lines
