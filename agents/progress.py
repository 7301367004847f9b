"""Tells a person what is going on: a line per stage, and a moving line while one takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

WIDTH = 9


class Progress(Protocol):
    """Where the nodes say what they do."""

    def working(self, stage: str, text: str) -> None:
        """Say what is being worked on; overwritten by whatever comes next."""

    def done(self, stage: str, text: str) -> None:
        """Say what a stage came to; stays."""

    def note(self, text: str) -> None:
        """Say something that the user should know about the stage before; stays."""

    def output(self, text: str) -> None:
        """Pass on output of the user's program."""

    def close(self) -> None:
        """Stop moving."""


class Silent:
    """Says nothing, for `--json`."""

    def working(self, stage: str, text: str) -> None:
        """See `Progress`."""

    def done(self, stage: str, text: str) -> None:
        """See `Progress`."""

    def note(self, text: str) -> None:
        """See `Progress`."""

    def output(self, text: str) -> None:
        """See `Progress`."""

    def close(self) -> None:
        """See `Progress`."""


class OnConsole:
    """Prints to a console; moves only on a terminal.

    Args:
        console: Where to.
        verbose: Whether the output of the user's program is shown too.
    """

    def __init__(self, console: Console, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._status: Status | None = None

    def working(self, stage: str, text: str) -> None:
        """See `Progress`."""
        if not self._console.is_terminal:
            return
        line = f"[bold]{stage:<{WIDTH - 2}}[/] {_plain(text)}"
        if self._status is None:
            self._status = self._console.status(line)
            self._status.start()
        else:
            self._status.update(line)

    def done(self, stage: str, text: str) -> None:
        """See `Progress`."""
        self.close()
        self._print(f"[bold]{stage:<{WIDTH}}[/]", text)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._print(f"[dim]{'':<{WIDTH}}[/]", text)

    def output(self, text: str) -> None:
        """See `Progress`."""
        if self._verbose:
            self._console.out(text, end="", highlight=False)

    def close(self) -> None:
        """See `Progress`."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _print(self, head: str, text: str) -> None:
        first, *rest = text.split("\n")
        self._console.print(f"{head}{_plain(first)}", highlight=False, soft_wrap=True)
        for line in rest:
            self._console.print(f"{'':<{WIDTH}}{_plain(line)}", highlight=False, soft_wrap=True)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
