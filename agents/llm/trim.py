"""Makes a conversation short enough for a model: what can be looked up again goes first, evidence never."""

from __future__ import annotations

from collections.abc import Sequence

from agents.llm.messages import Message


class DoesNotFit(Exception):
    """What may not be left out is longer than the context."""


def trim(messages: Sequence[Message], most: int, keep: int = 6) -> list[Message]:
    """The messages in at most `most` characters.

    Oldest first, results of tools become one line, then the texts of the model and the user's small talk do. The
    system's message, evidence and the last `keep` messages stay whole; every call keeps its answer.

    Raises:
        DoesNotFit: Even so it is too long.
    """
    kept = list(messages)
    for passes in (_tool_result, _talk):
        for number in range(max(len(kept) - keep, 0)):
            if size(kept) <= most:
                return kept
            message = kept[number]
            if message.role != "system" and not message.evidence and passes(message):
                kept[number] = _short(message)
    if size(kept) > most:
        raise DoesNotFit(f"{size(kept)} characters, of which {most} fit")
    return kept


def size(messages: Sequence[Message]) -> int:
    """Characters of all messages, arguments of calls included."""
    return sum(len(m.content) + sum(len(call.arguments) for call in m.tool_calls) for m in messages)


def _tool_result(message: Message) -> bool:
    return message.role == "tool"


def _talk(message: Message) -> bool:
    return message.role in ("assistant", "user")


def _short(message: Message) -> Message:
    if len(message.content) < 120:
        return message
    what = f"of {message.name} " if message.name else ""
    return message.model_copy(
        update={"content": f"[{len(message.content)} characters {what}left out; ask again for them]"}
    )
