"""What a person sees while a migration works."""

from __future__ import annotations

import io

from rich.console import Console

from agents.progress import OnConsole


def shown(terminal: bool) -> tuple[OnConsole, io.StringIO]:
    text = io.StringIO()
    return OnConsole(Console(file=text, force_terminal=terminal, width=200)), text


def test_away_from_a_terminal_only_results_are_printed():
    progress, text = shown(terminal=False)
    progress.working("run", "step 1")
    progress.done("run", "3 steps\nsecond line")
    progress.note("[red]a/path[/red] (kept as it is)")
    assert text.getvalue() == "run      3 steps\n         second line\n         [red]a/path[/red] (kept as it is)\n"


def test_on_a_terminal_work_in_progress_moves_and_stops():
    progress, text = shown(terminal=True)
    progress.working("run", "step [1]")
    progress.working("run", "step [2]")
    progress.done("run", "done")
    progress.close()
    assert "step" in text.getvalue()
    assert text.getvalue().endswith("done\n")


def test_output_of_the_program_is_shown_only_when_asked_for():
    progress, text = shown(terminal=False)
    progress.output("hello\n")
    assert text.getvalue() == ""
    loud = OnConsole(Console(file=text), verbose=True)
    loud.output("hello [x]\n")
    assert text.getvalue() == "hello [x]\n"
