"""Check `hidden`: what a task itself asks, as a program that is run in the migrated tree on the device."""

from __future__ import annotations

from evals.scorers import running
from evals.scorers.case import Case, Outcome
from tools.commands import Command

_LONGEST = 300


def check(case: Case) -> Outcome:
    """Run the task's own program, with the tree's modules in reach."""
    if not case.task.hidden.is_file():
        return Outcome("not applicable", "the task asks nothing more")
    program = case.task.hidden.read_text(encoding="utf-8")
    command = Command(text="hidden.py", argv=["python", "-c", program], env={"PYTHONPATH": "."})
    output = running.run(command, case.tree, case.place / "hidden", "device", case.limits)
    if running.completed(output):
        return Outcome("pass")
    last = [line for line in running.text(output).splitlines() if line.strip()][-1:]
    return Outcome("fail", (last[0] if last else output.explanation)[:_LONGEST])
