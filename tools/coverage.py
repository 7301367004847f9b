"""Which known failure is answered by which rule or knowledge entry, and which test shows it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tools.findings import Grade
from tools.knowledge import Entry, entries
from tools.rules import all_rules
from tools.rules.base import Rule

ROWS = Path(__file__).with_suffix(".toml")
_SHOWN = re.compile(r"^    (?:Shown|Said)\(\s*\"([A-R]\d+)\"", re.MULTILINE)


class Row(BaseModel):
    """One thing that goes wrong when CUDA code moves to a TPU."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    symptom: str = Field(min_length=1, max_length=160)
    sources: tuple[str, ...] = Field(default=(), description="public threads, `owner/repository#number`")
    shown: bool = Field(default=False, description="a test runs the broken program and the fixed one")
    non_goal: str | None = Field(default=None, min_length=20, description="why nothing answers it")

    def links(self) -> list[str]:
        """Addresses of the sources."""
        return [f"https://github.com/{s.partition('#')[0]}/issues/{s.partition('#')[2]}" for s in self.sources]


class Answer(BaseModel):
    """What answers a row."""

    row: str
    fixes: list[str] = Field(default=[], description="rules that mend it")
    advises: list[str] = Field(default=[], description="rules that report it")
    entries: list[str] = []
    non_goal: str | None = None
    tests: list[str] = []


@cache
def rows() -> dict[str, Row]:
    """Every row, by id.

    Raises:
        pydantic.ValidationError: a row is not well formed.
    """
    document = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    return {name: Row.model_validate(row) for name, row in document.items()}


def answers(tests: Path) -> list[Answer]:
    """What answers each row, in the order of the file.

    Args:
        tests: folder of the tests, in which rows that are shown are looked for.
    """
    rules, known, shown = _rules(), _entries(), shown_in(tests)
    return [_answer(name, row, rules.get(name, []), known.get(name, []), shown) for name, row in rows().items()]


def _answer(name: str, row: Row, rules: Sequence[Rule], known: Sequence[Entry], shown: Mapping[str, str]) -> Answer:
    named = [entry.id for entry in known if entry.symptoms]  # advice names no failure, so no test has it named
    tests = [f"test_rules.py[{rule.ID}]" for rule in rules] + [f"test_diagnose.py[{entry}]" for entry in named]
    if name in shown:
        tests.insert(0, f"{shown[name]}[{name}]")
    return Answer(
        row=name,
        fixes=[rule.ID for rule in rules if _mends(rule)],
        advises=[rule.ID for rule in rules if not _mends(rule)],
        entries=[entry.id for entry in known],
        non_goal=row.non_goal,
        tests=tests,
    )


def _mends(rule: Rule) -> bool:
    return rule.GRADE is not Grade.ADVICE or any(case.fixed is not None for case in rule.INVALID)


def _rules() -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in all_rules():
        for row in rule.COVERS:
            found.setdefault(row, []).append(rule)
    return found


def _entries() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries():
        for row in entry.rows:
            found.setdefault(row, []).append(entry)
    return found


def shown_in(tests: Path) -> dict[str, str]:
    """The test file that shows each row."""
    found = {}
    for path in sorted(tests.glob("tools/test_rows_*.py")):
        found.update(dict.fromkeys(_SHOWN.findall(path.read_text(encoding="utf-8")), path.name))
    return found


def problems(tests: Path) -> list[str]:
    """What is missing or does not fit between rows, rules, entries and tests."""
    known, found = rows(), []
    for answer in answers(tests):
        answered = bool(answer.fixes or answer.advises or answer.entries)
        if answered == bool(answer.non_goal):
            found.append(f"{answer.row}: " + ("answered, and yet a non-goal" if answered else "nothing answers it"))
    shown = shown_in(tests)
    found += [f"{name}: no test shows it" for name, row in known.items() if row.shown and name not in shown]
    found += [f"{shown[name]} shows {name}, which is no row" for name in shown if name not in known]
    for rule in all_rules():
        found += [f"{rule.ID} covers {row}, which is no row" for row in rule.COVERS if row not in known]
        if bool(rule.COVERS) == bool(rule.REASON):
            found.append(f"{rule.ID} must cover a row or give another REASON, not both")
    for entry in entries():
        found += [f"entry {entry.id} names {row}, which is no row" for row in entry.rows if row not in known]
    return found
