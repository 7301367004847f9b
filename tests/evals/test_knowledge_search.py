"""The search finds what people ask for, and its figures are honest."""

from __future__ import annotations

from evals.knowledge import FILE, rank
from evals.rates import answers, wilson
from tools.knowledge import entries

QUESTIONS = answers(FILE)


def test_the_right_entry_is_among_the_first_five() -> None:
    missed = [question for question, wanted in QUESTIONS.items() if (rank(question, wanted) or 99) > 5]
    assert len(QUESTIONS) >= 100
    assert len(missed) <= len(QUESTIONS) // 10, missed


def test_questions_name_entries_that_exist() -> None:
    known = {entry.id for entry in entries()}
    assert {name for wanted in QUESTIONS.values() for name in wanted} <= known


def test_the_interval_is_around_the_rate_and_never_certain() -> None:
    low, high = wilson(9, 10)
    assert 0.5 < low < 0.9 < high < 1
    assert wilson(0, 0) == (0.0, 1.0)
