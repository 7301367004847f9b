"""The record of what a model did, written after every step, and a model that says it all again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from agents.llm.client import ModelUnreachable
from agents.llm.messages import Message, Reply
from agents.llm.redact import redact
from agents.runs import write_whole
from tools.errors import UserError

VERSION: Literal[1] = 1


class Step(BaseModel):
    """One step: what the user said, what the model answered, what a tool gave, or why it ended."""

    kind: Literal["said", "reply", "tool", "stop"]
    text: str = ""
    reply: Reply | None = None
    tool: str = ""
    arguments: str = ""
    seconds: float = 0.0


class Record(BaseModel):
    """A trajectory file."""

    version: Literal[1] = VERSION
    model: str
    source: str = ""
    base: str = Field(default="", description="commit it began from")
    steps: list[Step] = []


class Trajectory:
    """Appends steps to a file; it is whole after each.

    Args:
        path: The file; an old one is gone on with.
        model: Name of the model.
        source: The repository.
        base: The commit it began from.
    """

    def __init__(self, path: Path, model: str, source: str = "", base: str = "") -> None:
        self.path = path
        self._record = read(path) if path.is_file() else Record(model=model, source=source, base=base)

    def add(self, step: Step) -> None:
        """Write one more step, without secrets."""
        self._record.steps.append(step)
        write_whole(self.path, redact(self._record.model_dump_json(indent=1)))


def read(path: Path) -> Record:
    """A trajectory file.

    Raises:
        UserError: It is none.
    """
    try:
        return Record.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise UserError(
            f"{path} is no trajectory: {str(error).splitlines()[0]}", "Name a file that chat wrote."
        ) from error


class Replay:
    """Answers as the model of a trajectory did, in the same order; no server is asked."""

    def __init__(self, record: Record) -> None:
        self._replies = [step.reply for step in record.steps if step.reply is not None]
        self._next = 0

    def complete(
        self,
        messages: Sequence[Message],  # noqa: ARG002 - it says what it said, whatever it is asked
        tools: Sequence[dict[str, Any]],  # noqa: ARG002
        on_text: Callable[[str], None],
    ) -> Reply:
        """See `agents.llm.client.Model`."""
        if self._next >= len(self._replies):
            raise ModelUnreachable("The trajectory has no further answer.", "It ends where the model's work ended.")
        reply = self._replies[self._next]
        self._next += 1
        on_text(reply.message.content)
        return reply
