"""Every known failure is answered by a rule, a knowledge entry or a stated non-goal, and what is named exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import coverage
from tools.coverage import Row, answers, problems, rows, shown_in
from tools.knowledge import entries
from tools.rules import all_rules

TESTS = Path(__file__).resolve().parent.parent


def test_every_row_is_answered() -> None:
    assert problems(TESTS) == []


def test_rows_are_the_whole_catalogue() -> None:
    assert len(rows()) == 182
    assert sum(row.shown for row in rows().values()) == 40
    assert all(re.fullmatch(r"[A-R]\d+", name) for name in rows())


@pytest.mark.parametrize("name", rows())
def test_a_row_says_what_and_where(name: str) -> None:
    row = rows()[name]
    assert row.symptom == row.symptom.strip()
    assert not row.symptom.endswith(".")
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source) for source in row.sources)


def test_tests_that_answers_name_exist() -> None:
    parametrised = {f"test_rules.py[{rule.ID}]" for rule in all_rules()}
    parametrised |= {f"test_diagnose.py[{entry.id}]" for entry in entries() if entry.symptoms}
    parametrised |= {f"{file}[{row}]" for row, file in shown_in(TESTS).items()}
    for answer in answers(TESTS):
        assert answer.tests or answer.non_goal
        assert set(answer.tests) <= parametrised
    assert all((TESTS / "tools" / name.partition("[")[0]).is_file() for name in parametrised)


def changed(monkeypatch: pytest.MonkeyPatch, **more: Row) -> list[str]:
    table = {**rows(), **more}
    monkeypatch.setattr(coverage, "rows", lambda: table)
    return problems(TESTS)


def test_a_row_without_an_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed(monkeypatch, A99=Row(symptom="new")) == ["A99: nothing answers it"]


def test_a_row_that_is_answered_is_no_non_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows()["A10"].model_copy(update={"non_goal": "nobody wants it answered"})
    assert changed(monkeypatch, A10=row) == ["A10: answered, and yet a non-goal"]


def test_a_row_to_be_shown_without_a_test_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows()["A10"].model_copy(update={"shown": True})
    assert changed(monkeypatch, A10=row) == ["A10: no test shows it"]


def test_rows_that_rules_and_entries_name_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {name: row for name, row in rows().items() if name != "B12"}
    monkeypatch.setattr(coverage, "rows", lambda: table)
    found = problems(TESTS)
    assert "TPU216 covers B12, which is no row" in found
    assert "entry tpu-twin-refused names B12, which is no row" in found


def test_a_rule_without_a_row_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = next(rule for rule in all_rules() if rule.REASON)
    monkeypatch.setattr(type(rule), "REASON", "")
    assert f"{rule.ID} must cover a row or give another REASON, not both" in problems(TESTS)
