"""How often a question finds its entry: `python -m evals.knowledge` prints recall at 1 and at 5 with 95 % intervals.

By words, by meaning, and by both; the last two need the optional extra `search`.
"""

from __future__ import annotations

from pathlib import Path

from evals.rates import answers, line
from tools import embeddings
from tools.search import Ranking, search

FILE = Path(__file__).with_name("questions.toml")


def rank(question: str, wanted: list[str], most: int = 10, ranking: Ranking = Ranking.LEXICAL) -> int | None:
    """The place of the first right entry, from 1 on; None where it is not among the first `most`."""
    found = [hit.id for hit in search(question, most, rules=False, ranking=ranking).hits]
    return next((number for number, name in enumerate(found, 1) if name in wanted), None)


def main() -> None:
    """Print the rates of each ranking, and the questions that the best installed one does not answer in five."""
    questions = answers(FILE)
    rankings = list(Ranking) if embeddings.available() else [Ranking.LEXICAL]
    ranks: dict[str, int | None] = {}
    for ranking in rankings:
        ranks = {question: rank(question, wanted, ranking=ranking) for question, wanted in questions.items()}
        print(ranking)
        for most in (1, 5):
            print(line(f"recall@{most}", sum(p is not None and p <= most for p in ranks.values()), len(ranks)))
    if not embeddings.available():
        print("embeddings: not run, the extra `search` is not installed")
    for question, place in ranks.items():
        if place is None or place > 5:
            print(f"missed: {question} ({', '.join(questions[question])})")


if __name__ == "__main__":
    main()
