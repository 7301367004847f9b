"""Plain words find the entry they mean, without a model."""

from __future__ import annotations

from tools.search import search, terms


def test_words_are_found_in_identifiers_and_through_their_endings() -> None:
    assert set(terms("torch.cuda.amp.GradScaler")) >= set(terms("scalers grad"))
    assert terms("hanging") == terms("hangs") == terms("stuck")


def test_nothing_is_found_for_words_nobody_wrote() -> None:
    assert search("zyxwvut qqqq").hits == []


def test_scores_fall_from_one() -> None:
    scores = [h.score for h in search("out of memory").hits]
    assert scores[0] == 1 and scores == sorted(scores, reverse=True)
