"""A session as Markdown: the conversation, how the tree stands, and what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.llm.messages import Message
from agents.llm.redact import redact
from agents.standing import standing

if TYPE_CHECKING:
    from agents.chat import Chat


def markdown(chat: Chat) -> str:
    """The whole session, without secrets."""
    state = chat.bench.state
    lines = [f"# Session {state.run_id}", "", f"- source: {state.origin.name}", f"- base: `{state.origin.base}`"]
    lines += [f"- entry: `{entry.command}`" for entry in state.entries]
    lines += [f"- shown: {standing(chat.bench)}", "", "## Conversation", ""]
    for message in chat.messages():
        lines += _said(message)
    lines += ["## Commits", "", *(f"- `{commit.sha[:12]}` {commit.title}" for commit in state.commits)]
    lines += ["", "## Changes", "", *_fenced(chat.bench.diff() or "none", "diff")]
    return redact("\n".join(lines)) + "\n"


def _said(message: Message) -> Iterator[str]:
    if message.role == "system" or message.shown == "":
        return
    if message.role == "tool":
        yield from (f"Result of `{message.name}`:", "", *_fenced(message.content))
        return
    who = {"user": "**You**", "assistant": "**torchtpu-agent**"}[message.role]
    text = message.shown or message.content
    if text.strip():
        yield from (who, "", *(_fenced(text) if message.shown else [text]), "")
    for call in message.tool_calls:
        yield from (f"Call of `{call.name}`:", "", *_fenced(call.arguments, "json"))


def _fenced(text: str, kind: str = "") -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{kind}", text.rstrip("\n"), fence, ""]
