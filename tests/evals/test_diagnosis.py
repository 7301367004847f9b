"""The set of failures is named as the page says, and nothing ordinary is named with certainty."""

from __future__ import annotations

from evals.diagnosis import FILE, score
from evals.rates import answers
from tools.knowledge import entries


def test_most_are_named_and_nothing_ordinary_is() -> None:
    made = score()
    assert made.known >= 80 and made.ordinary >= 18
    assert made.first / made.known >= 0.95, made.missed
    assert made.left_alone == made.ordinary
    assert len(made.certain_and_wrong) <= 1, made.certain_and_wrong


def test_the_set_names_entries_that_exist() -> None:
    known = {entry.id for entry in entries()}
    assert {name for wanted in answers(FILE).values() for name in wanted} <= known
