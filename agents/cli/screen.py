"""A console for people that does not end the process where its reader goes away."""

from __future__ import annotations

from typing import Any, NoReturn

from rich.console import Console

from agents.cli.output import writing


class Screen(Console):
    """Rich's console; by itself that one ends the process with exit code 1 when a pipe is closed."""

    def print(self, *objects: Any, **options: Any) -> None:
        """See `rich.console.Console.print`."""
        with writing(self.stderr):
            super().print(*objects, **options)

    def out(self, *objects: Any, **options: Any) -> None:
        """See `rich.console.Console.out`."""
        with writing(self.stderr):
            super().out(*objects, **options)

    def on_broken_pipe(self) -> NoReturn:
        """Hand the error on, which rich calls this for."""
        raise BrokenPipeError
