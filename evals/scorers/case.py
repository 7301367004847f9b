"""One migrated tree that is being checked, with the runs that several checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from evals.candidates.answer import Limits
from evals.ecosystem.checks import measures
from evals.scorers import running
from evals.task import Task
from tools.commands import Command, parse
from tools.run import RunOutput

Verdict = Literal["pass", "fail", "not applicable"]
Runs = dict[tuple[str, running.Where], RunOutput]
SAME = 1e-6
"""Largest difference of numbers that the same device prints, as a share of their size."""


class Outcome(NamedTuple):
    """What a check found, and why."""

    verdict: Verdict
    why: str = ""


class Broken(Exception):
    """The task itself does not do what it says: its original fails where it must not."""


@dataclass
class Case:
    """A tree under check.

    Attributes:
        task: What it is a migration of.
        original: Checkout of the task; only read.
        tree: The migrated tree; only read.
        place: Folder for copies and logs.
        limits: Interpreter and time.
        originals: Runs of the original so far, by command and by what it computed on; candidates on the same task
            share them.
    """

    task: Task
    original: Path
    tree: Path
    place: Path
    limits: Limits
    originals: Runs = field(default_factory=dict)
    _runs: Runs = field(default_factory=dict)

    def entries(self) -> list[Command]:
        """The task's entries."""
        return [parse(entry) for entry in self.task.entries]

    def migrated(self, command: Command, where: running.Where) -> RunOutput:
        """A run of the migrated tree, made once."""
        return self._run("migrated", self._runs, command, where)

    def before(self, command: Command, where: running.Where) -> RunOutput:
        """A run of the original, made once.

        Raises:
            Broken: It does not end well.
        """
        output = self._run("original", self.originals, command, where)
        if not running.completed(output):
            raise Broken(f"the original with {where}: {output.explanation}")
        return output

    def _run(self, side: str, runs: Runs, command: Command, where: running.Where) -> RunOutput:
        key = (command.text, where)
        if key not in runs:
            place = self.place / f"{side}-{where.replace(' ', '-')}-{len(runs)}"
            tree = self.original if side == "original" else self.tree
            runs[key] = running.run(command, tree, place, where, self.limits)
        return runs[key]


def compare(found: RunOutput, wanted: RunOutput, tolerance: float, at_least: int) -> Outcome:
    """Whether a run came to its own end and printed the numbers of another.

    Args:
        found: The run of the migrated program.
        wanted: The run of the original.
        tolerance: Largest difference of a number, as a share of its size.
        at_least: Fewest numbers that the original prints; 0 where it prints none.

    Raises:
        Broken: The original prints too few, or the same all the time, so that agreement would prove nothing.
    """
    if bad := ended_badly(found):
        return bad
    said = _differ(found, wanted, tolerance, at_least) if at_least else ""
    return Outcome("fail", said) if said else Outcome("pass")


def ended_badly(output: RunOutput) -> Outcome | None:
    """The outcome where a program did not come to its own end."""
    return None if running.completed(output) else Outcome("fail", output.explanation)


def _differ(found: RunOutput, wanted: RunOutput, tolerance: float, at_least: int) -> str:
    """How the numbers that two runs printed differ; empty where they agree."""
    old, new = measures(running.text(wanted)), measures(running.text(found))
    if len(old) < at_least or (at_least > 1 and len(set(old)) < 2):
        raise Broken(f"the original prints {len(old)} numbers of what it computed, {len(set(old))} of them different")
    if len(old) != len(new):
        return f"{len(new)} numbers printed, {len(old)} by the original"
    for place, (one, other) in enumerate(zip(old, new, strict=True), 1):
        # A program prints a few places; half a unit of the fourth is no difference.
        if not abs(one - other) <= tolerance * abs(one) + 5e-5:
            return f"number {place} of {len(old)} is {other}, {one} in the original"
    return ""
