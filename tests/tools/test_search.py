"""Plain words find the entry they mean, without a model."""

from __future__ import annotations

import pytest

from tools import embeddings
from tools.search import Ranking, search, terms


def test_words_are_found_in_identifiers_and_through_their_endings() -> None:
    assert set(terms("torch.cuda.amp.GradScaler")) >= set(terms("scalers grad"))
    assert terms("hanging") == terms("hangs") == terms("stuck")


def test_nothing_is_found_for_words_nobody_wrote() -> None:
    assert search("zyxwvut qqqq").hits == []


def test_scores_fall_from_one() -> None:
    scores = [h.score for h in search("out of memory").hits]
    assert scores[0] == 1 and scores == sorted(scores, reverse=True)


def test_the_ranking_says_what_it_used() -> None:
    expected = Ranking.BOTH if embeddings.available() else Ranking.LEXICAL
    assert search("out of memory").ranking is expected
    assert search("out of memory", ranking=Ranking.LEXICAL).ranking is Ranking.LEXICAL


def test_words_alone_do_where_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_model", lambda: None)
    found = search("out of memory")
    assert found.ranking is Ranking.LEXICAL
    assert found == search("out of memory", ranking=Ranking.LEXICAL)


def test_meaning_lifts_what_shares_few_words() -> None:
    if not embeddings.available():
        pytest.skip("the extra `search` is not installed")
    near = embeddings.similarities("the machine has no graphics card", ("there is no GPU here", "a list of cooks"))
    assert near is not None and near[0] > near[1]
