"""How often a question finds its entry: `python -m evals.knowledge` prints recall at 1 and at 5 with 95 % intervals."""

from __future__ import annotations

from pathlib import Path

from evals.rates import answers, line
from tools.search import search

FILE = Path(__file__).with_name("questions.toml")


def rank(question: str, wanted: list[str], most: int = 10) -> int | None:
    """The place of the first right entry, from 1 on; None where it is not among the first `most`."""
    found = [hit.id for hit in search(question, most, rules=False).hits]
    return next((number for number, name in enumerate(found, 1) if name in wanted), None)


def main() -> None:
    """Print the rates and the questions that were not answered in the first five."""
    questions = answers(FILE)
    ranks = {question: rank(question, wanted) for question, wanted in questions.items()}
    for most in (1, 5):
        print(line(f"recall@{most}", sum(place is not None and place <= most for place in ranks.values()), len(ranks)))
    for question, place in ranks.items():
        if place is None or place > 5:
            print(f"missed: {question} ({', '.join(questions[question])})")


if __name__ == "__main__":
    main()
