"""The steps of a model at work: ask it, take its answer apart, do one call. Graphs and nodes put them together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agents.llm.budget import Budget, Spent, Stop
from agents.llm.client import Model, ModelUnreachable
from agents.llm.messages import Message, Reply, ToolCall
from agents.llm.redact import redact
from agents.llm.trim import DoesNotFit, trim
from agents.modes import Mode
from agents.toolkit import tools
from agents.toolkit.base import Effect, Tool, ToolError, ToolResult
from agents.toolkit.bench import Bench

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"
MOST_WRONG = 4
"""Calls in a row that no tool could take, after which it is given up."""

_CUT = "Your answer was cut off because it was too long. Go on, more briefly; make one tool call at a time."
_EMPTY = "Your answer was empty. Use a tool, or say in a few sentences what you found."


class Leave(StrEnum):
    """Whether a call may be made."""

    YES = "yes"
    ASK = "ask"
    NO = "no"


_FREE = {
    Mode.ASK: {Effect.READ},
    Mode.AUTO_SAFE: {Effect.READ, Effect.RUN, Effect.SAFE_EDIT},
    Mode.READ_ONLY: {Effect.READ},
}


def leave(effect: Effect, mode: Mode) -> Leave:
    """Whether a call with this effect may be made in this mode. A run changes nothing, so read-only asks for it."""
    if effect in _FREE[mode]:
        return Leave.YES
    return Leave.NO if mode is Mode.READ_ONLY and effect is not Effect.RUN else Leave.ASK


@dataclass(frozen=True)
class Thought:
    """What a call of the model came to: messages to add, calls to make, or the end.

    Attributes:
        reply: As it came; None where none did.
    """

    messages: list[Message]
    spent: Spent
    calls: list[ToolCall]
    stop: Stop | None
    reply: Reply | None
    problem: str = ""


def system_message(name: str = "debug") -> Message:
    """The instructions of a room's prompt file."""
    return Message(role="system", content=(PROMPTS / f"{name}.md").read_text(encoding="utf-8"))


def think(
    model: Model,
    messages: Sequence[Message],
    spent: Spent,
    budget: Budget,
    context: int,
    on_text: Callable[[str], None] = lambda _text: None,
    offered: Sequence[Tool] | None = None,
) -> Thought:
    """Ask the model once, within its budget."""
    stop = spent.over(budget)
    if stop is not None:
        return Thought([], spent, [], stop, None)
    schemas: list[dict[str, Any]] = [tool.schema() for tool in (tools().values() if offered is None else offered)]
    try:
        fitting = trim(messages, context)
    except DoesNotFit as error:
        return Thought([], spent, [], Stop.CONTEXT, None, str(error))
    began = time.monotonic()
    try:
        reply = model.complete(fitting, schemas, on_text)
    except ModelUnreachable as error:
        return Thought([], _after(spent, None, began), [], Stop.UNREACHABLE, None, f"{error.message} {error.remedy}")
    return _taken(reply, _after(spent, reply, began))


def _after(spent: Spent, reply: Reply | None, began: float) -> Spent:
    tokens = reply.usage.prompt + reply.usage.completion if reply else 0
    changes = {
        "calls": spent.calls + 1,
        "tokens": spent.tokens + tokens,
        "seconds": spent.seconds + time.monotonic() - began,
    }
    return spent.model_copy(update=changes)


def _taken(reply: Reply, spent: Spent) -> Thought:
    message = reply.message
    if reply.finish == "refusal":
        return Thought([message], spent, [], Stop.REFUSED, reply)
    if reply.finish == "tools":
        return Thought([message], spent, list(message.tool_calls), None, reply)
    if reply.finish == "stop" and message.content.strip():
        return Thought([message], spent, [], Stop.ANSWERED, reply)
    wrong = spent.model_copy(update={"wrong_in_a_row": spent.wrong_in_a_row + 1})
    stop = None
    if wrong.wrong_in_a_row >= MOST_WRONG:
        stop = Stop.TRUNCATED if reply.finish == "length" else Stop.NO_PROGRESS
    said = Message(role="user", content=_CUT if reply.finish == "length" else _EMPTY, shown="")
    return Thought([message, said], wrong, [], stop, reply)


def effect_of(call: ToolCall, offered: dict[str, Tool] | None = None) -> Effect:
    """What a call would do; one that no tool takes does nothing."""
    try:
        tool, arguments = _resolved(call, tools() if offered is None else offered)
    except ToolError:
        return Effect.READ
    return tool.effect(arguments)


def act(call: ToolCall, bench: Bench, spent: Spent, offered: dict[str, Tool] | None = None) -> tuple[ToolResult, Spent]:
    """Make one call; a wrong one is answered with what is wrong about it."""
    try:
        tool, arguments = _resolved(call, tools() if offered is None else offered)
    except ToolError as error:
        wrong = spent.model_copy(update={"wrong_in_a_row": spent.wrong_in_a_row + 1})
        return ToolResult(ok=False, text=error.message), wrong
    bench.call_id = call.id
    began = time.monotonic()
    try:
        result = tool.call(arguments, bench)
    finally:
        bench.call_id = ""
    changes = {"wrong_in_a_row": 0, "seconds": spent.seconds + time.monotonic() - began}
    return result, spent.model_copy(update=changes)


def _resolved(call: ToolCall, offered: dict[str, Tool]) -> tuple[Tool, Any]:
    tool = offered.get(call.name)
    if tool is None:
        raise ToolError(f"There is no tool {call.name!r}; there are: {', '.join(offered)}.")
    return tool, tool.parse(call.arguments)


def answer_of(call: ToolCall, result: ToolResult) -> Message:
    """A result as the model is told it: marked as data, without secrets."""
    # What a file holds must not end the mark that makes it data.
    text = redact(result.text).replace("</data>", "</ data>")
    state = "ok" if result.ok else "not ok"
    content = f"{state}\n<data>\n{text}\n</data>"
    return Message(role="tool", content=content, tool_call_id=call.id, name=call.name, evidence=result.evidence)


def refused(call: ToolCall, why: str) -> Message:
    """The answer to a call that was not made."""
    return Message(role="tool", content=f"not done: {why}", tool_call_id=call.id, name=call.name)


def unanswered(messages: Sequence[Message]) -> list[ToolCall]:
    """Calls of the last answer that nothing answers, as after an interruption; a server would not take them so."""
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    return [call for message in messages for call in message.tool_calls if call.id not in answered]
