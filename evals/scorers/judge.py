"""Puts a candidate's answer to every check, and its claims beside them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from evals.candidates.answer import Answer, Limits
from evals.scorers import cpu, cuda, device, hidden, numbers, own_tests
from evals.scorers.case import Broken, Case, Outcome, Runs
from evals.task import Task

CHECKS: dict[str, Callable[[Case], Outcome]] = {
    "device": device.check, "numbers": numbers.check, "hidden": hidden.check,
    "cuda": cuda.check, "cpu": cpu.check, "own tests": own_tests.check,
}  # fmt: skip
TRUE_WHEN = {"runs": ("device",), "trains": ("device", "numbers", "hidden"), "preserves": ("cuda", "cpu", "own tests")}
"""Which checks have to hold for a claim to be true."""

# What it does elsewhere is compared with itself.
_ASKED = {"unchanged": ("device",)}

Kind = Literal["pass", "fail", "no answer", "infrastructure error"]


class Score(BaseModel):
    """One candidate on one task.

    Attributes:
        kind: `pass` when every check that applies holds.
        checks: Verdict and reason of each check.
        claims: What the candidate says passes.
        over_claims: Claims that the checks refute.
        under_claims: Stages that hold, which the candidate does not claim.
        changed: Lines added and taken away.
        reference: The same of the migration by hand.
        seconds: Wall time of the candidate.
    """

    task: str
    candidate: str
    digest: str
    difficulty: str
    kind: Kind
    why: str = ""
    checks: dict[str, tuple[str, str]] = {}
    claims: list[str] = []
    over_claims: list[str] = []
    under_claims: list[str] = []
    changed: int | None = None
    reference: int | None = None
    seconds: float = 0.0
    trail: dict[str, str] = {}
    date: str = ""
    revision: str = ""
    versions: dict[str, str] = {}

    def reached(self, stage: str) -> bool:
        """Whether the checks of a stage hold, whatever was claimed."""
        return bool(self.checks) and all(self.checks.get(check, ("fail",))[0] != "fail" for check in TRUE_WHEN[stage])


def judge(task: Task, name: str, answer: Answer, original: Path, place: Path, limits: Limits, originals: Runs) -> Score:
    """Check an answer.

    Args:
        task: The task.
        name: The candidate.
        answer: What it handed in.
        original: Checkout of the task.
        place: Folder for the runs.
        limits: Interpreter and time of the runs.
        originals: Runs of the original that other candidates needed; those that this one needs are put in.
    """
    score = Score(
        task=task.name, candidate=name, digest=task.digest(), difficulty=task.difficulty, kind="no answer",
        why=answer.why, claims=answer.claims, trail=answer.trail, reference=_lines(task),
    )  # fmt: skip
    if answer.tree is None:
        return score
    case = Case(task, original, answer.tree, place, limits, originals)
    try:
        asked = _ASKED.get(name, tuple(CHECKS))
        score.checks = {check: tuple(CHECKS[check](case)) for check in asked}
    except Broken as broken:
        score.kind, score.why = "infrastructure error", str(broken)
        return score
    score.changed = changed_lines(original, answer.tree)
    score.kind = "fail" if any(verdict == "fail" for verdict, _ in score.checks.values()) else "pass"
    score.over_claims = [claim for claim in TRUE_WHEN if claim in answer.claims and not score.reached(claim)]
    score.under_claims = [claim for claim in TRUE_WHEN if claim not in answer.claims and score.reached(claim)]
    return score


def changed_lines(original: Path, tree: Path) -> int:
    """Lines added and taken away between two trees."""
    names = {name for folder in (original, tree) for name in _files(folder)}
    return sum(_changed(original / name, tree / name) for name in names)


def _files(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if not {".git", "__pycache__"} & set(path.parts)}


def _changed(old: Path, new: Path) -> int:
    texts = [path.read_bytes().splitlines() if path.is_file() else [] for path in (old, new)]
    if texts[0] == texts[1]:
        return 0
    steps = difflib.SequenceMatcher(None, *texts, autojunk=False).get_opcodes()
    return sum(end - start + stop - begin for kind, start, end, begin, stop in steps if kind != "equal")


def _lines(task: Task) -> int | None:
    if not task.reference.is_file():
        return None
    lines = task.reference.read_text(encoding="utf-8").splitlines()
    return sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in lines if line)
