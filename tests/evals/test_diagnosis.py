"""The sets of failures are named as the page says, and nothing ordinary is named with certainty."""

from __future__ import annotations

from evals.diagnosis import failures, score
from tools.knowledge import entries


def test_most_are_named_and_hardly_any_wrongly_with_certainty() -> None:
    made = score(failures())
    assert made.total >= 150
    assert made.first / made.known >= 0.95, made.missed
    assert made.first_three / made.known >= 0.97, made.missed
    assert made.left_alone == made.ordinary, made.certain_and_wrong
    assert len(made.certain_and_wrong) / made.total <= 0.01, made.certain_and_wrong


def test_the_sets_name_entries_that_exist() -> None:
    known = {entry.id for entry in entries()}
    assert {name for failure in failures() for name in failure.accepts} <= known


def test_the_blind_failures_carry_their_cause_in_plain_words() -> None:
    blind = [failure for failure in failures() if failure.blind]
    assert len(blind) >= 30
    assert all(failure.cause and failure.text.strip() for failure in blind)
