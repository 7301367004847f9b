"""The chats that are open: each a child process, whose events are kept so that a page can come late and come back."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from typing import Any

from agents import sessions
from agents.runs import home
from agents.state import Request
from agents.web import children
from tools.errors import Exit, UserError

_MOST_EVENTS = 20_000
_PATIENCE = 10.0
_STARTING = {"event": "preparing", "text": "Opening the chat ..."}


class OpenChat:
    """One chat and its child.

    Args:
        name: Of the session.
        wanted: The line that opens it.
    """

    def __init__(self, name: str, wanted: dict[str, Any]) -> None:
        self.name = name
        self.used = time.monotonic()
        self.is_busy = True
        self.events: list[dict[str, Any]] = [_STARTING]
        self.first = 0
        self._exports: dict[int, str] = {}
        self._changed = threading.Condition()
        with (children.own_folder() / f"chat-{name}.log").open("ab") as log:
            self._child = children.start(
                "agents.web.chat_child", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=str(home())
            )
        self._reader = threading.Thread(target=self._read, daemon=True, name=f"chat {name}")
        self._reader.start()
        self._send(wanted)

    @property
    def is_alive(self) -> bool:
        """Whether the child is there."""
        return self._child.poll() is None

    def say(self, text: str) -> None:
        """Pass on what was typed.

        Raises:
            UserError: Something is going on.
        """
        if self.is_busy:
            raise UserError("The chat is at work.", "Wait for its end, or interrupt it.")
        self.is_busy = True
        self._send({"say": text})

    def answer(self, yes: bool) -> None:
        """Answer the question that waits."""
        self._send({"answer": yes})

    def interrupt(self) -> None:
        """End what is going on, and not the chat."""
        if self.is_alive:
            self._child.send_signal(signal.SIGINT)

    def export(self, seconds: float = 20.0) -> str:
        """The chat as Markdown.

        Raises:
            UserError: Something is going on.
        """
        if self.is_busy:
            raise UserError("The chat is at work.", "Export it when that has ended.")
        number = time.monotonic_ns()
        self._send({"export": number})
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._exports or not self.is_alive, seconds):
                raise UserError("The chat does not answer.", "Try again.")
            return self._exports.pop(number, "")

    def after(self, number: int) -> list[tuple[int, dict[str, Any]]]:
        """Events behind that number, each with its own."""
        with self._changed:
            start = max(number - self.first, 0)
            return [(self.first + start + at + 1, one) for at, one in enumerate(self.events[start:])]

    def close(self) -> None:
        """End the child; the session is kept."""
        with contextlib.suppress(OSError, ValueError):
            assert self._child.stdin is not None
            self._child.stdin.close()
        if self.is_alive:
            self._child.send_signal(signal.SIGTERM)
        children.see_off(self._child, _PATIENCE)
        self._reader.join(_PATIENCE)

    def _send(self, line: dict[str, Any]) -> None:
        self.used = time.monotonic()
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(line).encode() + b"\n")
            self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise UserError("The chat has ended.", "Open it again.") from error

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._take(json.loads(line))
        self._child.wait()
        self._take({"event": "closed"})

    def _take(self, event: dict[str, Any]) -> None:
        with self._changed:
            if event["event"] == "export":
                self._exports[event["number"]] = event["text"]
            else:
                self.events.append(event)
            if event["event"] in ("ready", "end", "failed", "closed"):
                self.is_busy = False
            if event["event"] in ("begin", "resuming"):
                self.is_busy = True
            if len(self.events) > _MOST_EVENTS:
                self.first += len(self.events) - _MOST_EVENTS
                del self.events[: len(self.events) - _MOST_EVENTS]
            self._changed.notify_all()


class Chats:
    """All chats that are open here.

    Args:
        most: How many at once; one that nobody has used longest makes room.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, OpenChat] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> OpenChat | None:
        """The chat of that name, where it is open here."""
        found = self._open.get(name)
        return found if found is not None and found.is_alive else None

    def last(self, name: str) -> OpenChat | None:
        """The same, also when its child has ended: its last words say why."""
        return self._open.get(name)

    def open(self, name: str, mode: str, model: str, request: Request | None = None) -> OpenChat:
        """Open a session, or make it where a request is given.

        Raises:
            UserError: Another process has it, its name is taken, or too many are at work.
        """
        with self._lock:
            known = self.find(name)
            if known is not None and request is None:
                return known
            folder = sessions.folder_of(name)
            if request is not None and sessions.is_made(folder):
                raise UserError(f"There is a chat {name}.", "Open it, or choose another name.")
            if request is None:
                sessions.card(folder)
                if folder.is_held():
                    raise UserError(f"The chat {name} is open in another process.", "End it there first.")
            self._make_room()
            wanted = {"name": name, "mode": mode, "model": model}
            wanted |= {"request": json.loads(request.model_dump_json())} if request is not None else {}
            self._open[name] = OpenChat(name, wanted)
            return self._open[name]

    def close(self, name: str) -> None:
        """Close a chat; it can be opened again."""
        found = self._open.pop(name, None)
        if found is not None:
            found.close()

    def close_all(self) -> None:
        """Close all of them."""
        for name in list(self._open):
            self.close(name)

    def count(self) -> int:
        """How many are open."""
        return sum(chat.is_alive for chat in self._open.values())

    def _make_room(self) -> None:
        alive = [chat for chat in self._open.values() if chat.is_alive]
        if len(alive) < self._most:
            return
        idle = sorted((chat for chat in alive if not chat.is_busy), key=lambda chat: chat.used)
        if not idle:
            raise UserError(f"{self._most} chats are at work.", "Wait for one, or close one.", Exit.ENVIRONMENT)
        self.close(idle[0].name)
