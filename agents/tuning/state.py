"""What the tune graph knows besides what it shares with migrate."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from agents.state import MODELS as SHARED
from agents.state import State, TuneOptions
from tools.estimate import Estimate, Program

Verdict = Literal["kept", "dropped", "advice", "not applicable"]


class Trial(BaseModel):
    """One transformation, and what came of it."""

    number: int
    transform: str
    title: str
    changes: str = Field(description="what is computed otherwise on purpose: nothing, rounding or batch")
    verdict: Verdict
    reason: str = ""
    command: str = Field(description="the entry with it")
    before: Estimate | None = None
    after: Estimate | None = None
    verified: list[str] = Field(default=[], description="what was compared, and what it came to")
    commit: str | None = None
    seconds: float = Field(default=0.0, description="wall time of the trial")

    @property
    def gain(self) -> float | None:
        """Estimated time of a sample before by after; of a step where the batch is not known."""
        return speedup(self.before, self.after)


def speedup(before: Estimate | None, after: Estimate | None) -> float | None:
    """How many times less time one takes than the other, by sample where both tell their batch."""
    if before is None or after is None or not before.seconds or not after.seconds:
        return None
    one, two = before.per_sample, after.per_sample
    return one / two if one and two else before.seconds / after.seconds


class TuneState(State):
    """State of the tune graph."""

    queue: list[str] = Field(default=[], description="ids of transformations that are still to be tried")
    plain: Estimate | None = Field(default=None, description="the migrated program as it launches its step")
    operators: Estimate | None = Field(default=None, description="the same, every operator a program of its own")
    whole: Estimate | None = Field(default=None, description="the same step as one program: what fusion can come to")
    best: Estimate | None = None
    command: str = Field(default="", description="the entry with the changes kept so far")
    small: str = Field(default="", description="the command that verification runs, with those changes")
    recording: str = Field(default="", description="folder with the recorded step of the tree as it stands")
    migrated: str = Field(default="", description="commit of the plain migration, that trials are compared with")
    trials: list[Trial] = []
    stopped: str = Field(default="", description="why not everything was tried")

    @property
    def options(self) -> TuneOptions:
        """What was asked for."""
        assert self.request.tune is not None
        return self.request.tune

    @property
    def spent(self) -> float:
        """Seconds of work so far, those before an interruption included."""
        return sum(self.durations.values())


MODELS: tuple[type, ...] = (*SHARED, Trial, Estimate, Program)
"""Everything that may appear in a checkpoint."""
