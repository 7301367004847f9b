"""The person's side of a chat: a prompt with history and completion on a terminal, plain lines from a pipe."""

from __future__ import annotations

import importlib.util
import select
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_PASTE_SECONDS = 0.05


class Terminal:
    """Reads what a person types.

    `prompt_toolkit` is used on a terminal where it is installed (the extra `chat`); without it the standard library's
    line editor is.

    Args:
        history: File of what was typed before.
        words: What is completed.
    """

    def __init__(self, history: Path, words: Sequence[str]) -> None:
        self.is_person = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        self._session: PromptSession[str] | None = None
        if self.is_person:
            history.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if importlib.util.find_spec("prompt_toolkit"):
                self._session = _rich_session(history, words)
            else:
                _use_readline(history, words)

    def read(self, prompt: str) -> str:
        """What is typed or pasted next.

        Raises:
            EOFError: Nothing more will come.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if self._session is not None:
            return self._session.prompt(prompt)
        if not self.is_person:
            line = sys.stdin.readline() if sys.stdin else ""
            if not line:
                raise EOFError
            return line.rstrip("\n")
        return "\n".join([input(prompt), *self._rest_of_paste()])

    def _rest_of_paste(self) -> list[str]:
        lines: list[str] = []
        while select.select([sys.stdin], [], [], _PASTE_SECONDS)[0]:
            line = sys.stdin.readline()
            if not line:
                break
            lines.append(line.rstrip("\n"))
        return lines

    def ask(self, question: str) -> bool:
        """Put a question; where there is no person, the answer is no."""
        if not self.is_person:
            return False
        try:
            return self.read(f"{question}\nDo it? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False


def _rich_session(history: Path, words: Sequence[str]) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import FuzzyCompleter, WordCompleter
    from prompt_toolkit.history import FileHistory

    completer = FuzzyCompleter(WordCompleter(list(words), sentence=True))
    return PromptSession(history=FileHistory(str(history)), completer=completer, complete_while_typing=False)


def _use_readline(history: Path, words: Sequence[str]) -> None:
    try:
        import atexit
        import readline
    except ImportError:  # absent on some platforms; the prompt works without it
        return
    plain = history.with_suffix(".plain")
    if plain.is_file():
        readline.read_history_file(plain)
    atexit.register(readline.write_history_file, plain)

    def complete(text: str, number: int) -> Any:
        fitting = [word for word in words if word.startswith(text)]
        return fitting[number] if number < len(fitting) else None

    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
