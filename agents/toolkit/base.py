"""A tool: its typed input, what it does to the world, its result, and the schema a model or another program sees."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from agents.toolkit.bench import Bench
from tools.errors import UserError
from tools.git import GitError

MOST_TEXT = 12_000
"""Characters of a result that a model is given."""


class Effect(StrEnum):
    """What a tool does: reads, runs the program in a disposable copy, or commits to the private tree."""

    READ = "read"
    RUN = "run"
    SAFE_EDIT = "safe edit"
    EDIT = "edit"


class ToolResult(BaseModel):
    """What came of a call.

    Attributes:
        evidence: It shows how something failed or held, and is not to be forgotten.
    """

    ok: bool = True
    text: str
    data: dict[str, Any] = Field(default={}, description="the same, for programs")
    evidence: bool = False


class ToolError(UserError):
    """A call that cannot be done; the message is for whoever called."""


class NoInput(BaseModel):
    """A tool that takes nothing."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        input: Its arguments; pydantic's schema of it is what a model sees.
        function: What it does; the docstring is its description.
        effect: What it does to the world, given the arguments.
    """

    name: str
    input: type[BaseModel]
    function: Callable[[Any, Bench], ToolResult]
    effect: Callable[[Any], Effect] = lambda _arguments: Effect.READ

    @property
    def description(self) -> str:
        """The docstring without the parts that are about Python."""
        return inspect.cleandoc(self.function.__doc__ or "").split("\n\nRaises:")[0]

    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        schema = self.input.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return {"additionalProperties": False, **schema}

    def schema(self) -> dict[str, Any]:
        """The tool as the chat-completions protocol has it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters()}
        return {"type": "function", "function": function}

    def parse(self, arguments: str) -> BaseModel:
        """The arguments, checked.

        Raises:
            ToolError: They are no JSON, or not what the tool takes.
        """
        try:
            values = json.loads(arguments or "{}")
        except ValueError as error:
            raise ToolError(f"The arguments of {self.name} are not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise ToolError(f"The arguments of {self.name} must be an object.")
        unknown = sorted(set(values) - set(self.input.model_fields))
        if unknown:
            known = ", ".join(self.input.model_fields) or "none"
            raise ToolError(f"{self.name} has no argument {', '.join(unknown)}; it has: {known}.")
        try:
            return self.input.model_validate(values)
        except ValidationError as error:
            said = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()[:3])
            raise ToolError(f"{self.name} cannot take these arguments: {said}.") from error

    def call(self, arguments: BaseModel, bench: Bench) -> ToolResult:
        """Do it; what a person or a model can put right becomes a result that says so."""
        try:
            return self.function(arguments, bench)
        except UserError as error:
            return ToolResult(ok=False, text=f"{error.message} {error.remedy}".strip())
        except (GitError, OSError, UnicodeError) as error:
            return ToolResult(ok=False, text=f"{self.name} failed: {error}")


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """The text with its middle left out where it is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - most} characters left out ...]\n{text[-half:]}"
