"""A chat in a process of its own, for a page: lines of JSON in, lines of JSON out, and SIGINT ends what is going on.

In comes what opens it, `{"name": ..., "mode": ..., "model": ..., "request": ...}`, then `{"say": text}`,
`{"answer": bool}` to a question, and `{"export": number}`. Out go objects with an `event`:

| event | what it says |
|---|---|
| preparing, working, done, note | progress of what is going on |
| ready | the session is open: its settings and the conversation so far |
| begin, resuming, end | a turn or a command begins, goes on after its process was killed, and ends |
| text, call, result | the model's words, a tool it uses, what came of that |
| answer | what came of a command |
| ask | a question that `answer` has to follow |
| interrupted, export, failed, closed | |
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from agents import debug, interrupts, sessions
from agents.chat import Chat
from agents.commands import WORDS, obey, remember
from agents.desks import furnished
from agents.llm.messages import Message
from agents.llm.redact import redact
from agents.llm.settings import ModelSettings, configured
from agents.modes import Mode
from agents.progress import Silent
from agents.runs import RunFolder
from agents.standing import standing
from agents.state import Request
from agents.transcript import markdown
from tools.errors import UserError
from tools.git import without_password

Tell = Callable[..., None]
_MOST = 12_000
_FILES = ("/report", "/export")
_IN_PAGE = "The whole chat as Markdown: the link Export, above."


class Told(Silent):
    """Progress as events."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def working(self, stage: str, text: str) -> None:
        """See `Progress`."""
        self._tell("working", stage=stage, text=text)

    def done(self, stage: str, text: str) -> None:
        """See `Progress`."""
        self._tell("done", stage=stage, text=text)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._tell("note", text=text)


class Page:
    """The person at the page.

    Args:
        coming: Lines from the page.
        going: Lines to the page.
    """

    def __init__(self, coming: TextIO, going: TextIO) -> None:
        self._coming = coming
        self._going = going

    def tell(self, event: str, **data: Any) -> None:
        """Send an event."""
        self._going.write(json.dumps({"event": event, **data}) + "\n")
        self._going.flush()

    def hear(self) -> dict[str, Any]:
        """The next line.

        Raises:
            EOFError: The page's server has gone, or closed the chat.
        """
        line = self._coming.readline()
        if not line:
            raise EOFError
        said = json.loads(line)
        return said if isinstance(said, dict) else {}

    def ask(self, question: str) -> bool:
        """Put a question, and wait for its answer."""
        self.tell("ask", question=question)
        while "answer" not in (said := self.hear()):
            pass
        self.tell("answered", yes=bool(said["answer"]))
        return bool(said["answer"])


def main() -> int:
    """Serve one chat until its page's server closes it."""
    interrupts.listen()
    page = Page(sys.stdin, _own_output())
    try:
        _open(page, page.hear())
    except EOFError:
        page.tell("closed")
    except KeyboardInterrupt:
        page.tell("failed", message="Interrupted.", remedy="")
    except UserError as error:
        page.tell("failed", message=error.message, remedy=error.remedy)
    return 0


def _own_output() -> TextIO:
    """Standard output for events alone: what a library prints goes to standard error."""
    mine = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return mine


def _open(page: Page, wanted: dict[str, Any]) -> None:
    folder, progress = sessions.folder_of(str(wanted["name"])), Told(page.tell)
    if wanted.get("request") is not None:
        asked = Request.model_validate(wanted["request"])
        source = Path(asked.source)
        chosen = _model(page, wanted, source if source.is_dir() else None)
        page.tell("preparing", text=f"Copying {without_password(asked.source)} ...")
        sessions.create(asked, folder.id, progress, chosen.model if chosen else "")
    else:
        chosen = _model(page, wanted, folder.tree)
    with sessions.held(folder):
        desk = furnished(folder, Mode(wanted.get("mode") or "ask"), chosen, None, progress)
        desk.on_text = lambda text: page.tell("text", text=text)
        desk.on_call = lambda call: page.tell("call", name=call.name, arguments=redact(call.arguments[:_MOST]))
        desk.on_result = lambda text: page.tell("result", text=_plain(text))
        with debug.opened(desk) as graph:
            _serve(Chat(graph, desk, page.ask), page, folder, chosen)


def _model(page: Page, wanted: dict[str, Any], repository: Path | None) -> ModelSettings | None:
    """The model that is wanted; a chat can be read, and gone on with, where it cannot be reached any more."""
    try:
        return configured(str(wanted.get("model") or "") or None, repository)
    except UserError as error:
        page.tell("note", text=f"{error.message} {error.remedy} Until then no model answers.")
        return None


def _serve(talk: Chat, page: Page, folder: RunFolder, chosen: ModelSettings | None) -> None:
    state = talk.bench.state
    page.tell(
        "ready", session=folder.id, source=state.origin.name, model=chosen.model if chosen else "",
        where=chosen.where if chosen else "", mode=talk.desk.mode,
        entry=state.entries[0].command if state.entries else "", standing=standing(talk.bench),
        history=[one for message in talk.messages() for one in _history(message)],
        words=[{"name": name, "usage": word.usage, "help": word.help} for name, word in WORDS.items()],
    )  # fmt: skip
    if talk.is_unfinished():
        page.tell("resuming", text="The last turn was not ended; going on with it.")
        _guarded(talk, page, lambda: talk.turn(None))
    while True:
        try:
            said = page.hear()
        except KeyboardInterrupt:
            _calm()
            continue
        if "export" in said:
            page.tell("export", number=said["export"], text=markdown(talk))
        elif "say" in said and str(said["say"]).strip():
            _take(talk, page, str(said["say"]))


def _take(talk: Chat, page: Page, line: str) -> None:
    page.tell("begin", said=line)
    if line.lstrip().startswith("/"):
        _guarded(talk, page, lambda: _command(talk, page, line.strip()))
    else:
        _guarded(talk, page, lambda: talk.turn(line))


def _command(talk: Chat, page: Page, line: str) -> None:
    if line.split()[0] in _FILES:
        page.tell("answer", ok=True, text=_IN_PAGE)
        return
    result = obey(talk, line)
    page.tell("answer", ok=result.ok, text=result.text)
    remember(talk, line, result)


def _guarded(talk: Chat, page: Page, work: Callable[[], object]) -> None:
    """Do it; an interruption ends it, and not the chat."""
    try:
        work()
    except KeyboardInterrupt:
        _calm()
        page.tell("interrupted")
    page.tell("end", standing=standing(talk.bench), mode=talk.desk.mode)


def _calm() -> None:
    """Go on after an interruption, unless it was about the process.

    Raises:
        KeyboardInterrupt: It was.
    """
    if interrupts.wants_end():
        raise KeyboardInterrupt
    interrupts.listen()


def _history(message: Message) -> list[dict[str, Any]]:
    """What was said before, as the events that would have shown it."""
    if message.role == "system" or message.shown == "":
        return []
    if message.role == "tool":
        return [{"event": "result", "text": _plain(message.content)}]
    if message.shown:
        typed, _, text = message.shown.partition("\n\n")
        return [{"event": "begin", "said": typed}, {"event": "answer", "ok": True, "text": text}]
    if message.role == "user":
        return [{"event": "begin", "said": message.content}]
    calls = [{"event": "call", "name": c.name, "arguments": c.arguments[:_MOST]} for c in message.tool_calls]
    return [*([{"event": "text", "text": message.content}] if message.content.strip() else []), *calls]


def _plain(text: str) -> str:
    return text.replace("<data>\n", "").replace("\n</data>", "")[:_MOST]


if __name__ == "__main__":
    sys.exit(main())
