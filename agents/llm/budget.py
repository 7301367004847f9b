"""What a model may spend, and the typed reasons for which its work ends."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Stop(StrEnum):
    """Why a turn ended."""

    ANSWERED = "answered"
    CALLS = "call limit"
    TOKENS = "token limit"
    SECONDS = "time limit"
    CONTEXT = "context limit"
    REFUSED = "the model refused"
    TRUNCATED = "the answer was cut off by the model's own limit"
    UNREACHABLE = "the model could not be reached"
    NO_PROGRESS = "the model made no usable call"
    INTERRUPTED = "interrupted"
    NO_MODEL = "no model configured"

    @property
    def is_limit(self) -> bool:
        """Whether it was a limit of the budget."""
        return self in (Stop.CALLS, Stop.TOKENS, Stop.SECONDS, Stop.CONTEXT)


class Budget(BaseModel):
    """Limits of one turn of a chat, or of the model's part in one migration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = Field(default=40, ge=1)
    tokens: int = Field(default=400_000, ge=1)
    seconds: float = Field(default=1800.0, gt=0)

    def lowered(self, other: Budget) -> Budget:
        """The stricter of two budgets, limit by limit."""
        return Budget(
            calls=min(self.calls, other.calls),
            tokens=min(self.tokens, other.tokens),
            seconds=min(self.seconds, other.seconds),
        )


class Spent(BaseModel):
    """What was spent so far; wrong calls are those that no tool could take."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    wrong_in_a_row: int = 0

    def over(self, budget: Budget) -> Stop | None:
        """The limit that is reached, if one is."""
        if self.calls >= budget.calls:
            return Stop.CALLS
        if self.tokens >= budget.tokens:
            return Stop.TOKENS
        return Stop.SECONDS if self.seconds >= budget.seconds else None
