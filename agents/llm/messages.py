"""What is said between a person, a model and the tools; typed, and kept in checkpoints and trajectories."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class ToolCall(BaseModel):
    """A model's wish to use a tool; its arguments are text until they have been checked."""

    id: str
    name: str
    arguments: str = "{}"


class Message(BaseModel):
    """One thing said.

    Attributes:
        evidence: Never left out when the context is made shorter: errors, results of runs and comparisons.
        shown: What a person saw where that is not `content`, such as a command they typed.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None
    name: str | None = Field(default=None, description="the tool that answers")
    evidence: bool = False
    shown: str | None = None

    def wire(self) -> dict[str, Any]:
        """The message as the chat-completions protocol has it."""
        said: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            said["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            said["tool_call_id"] = self.tool_call_id
        return said


class Usage(BaseModel):
    """Tokens of one call; estimated from the length of the texts where the server does not tell."""

    prompt: int = 0
    completion: int = 0
    estimated: bool = False


class Reply(BaseModel):
    """A model's answer to one call."""

    message: Message
    finish: Literal["stop", "tools", "length", "refusal"]
    usage: Usage = Usage()
    attempts: int = Field(default=1, description="requests it took, those that failed included")
