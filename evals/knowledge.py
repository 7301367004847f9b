"""How often a question finds its entry: `python -m evals.knowledge` prints recall at 1 and at 5 with 95 % intervals."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

from tools.search import search

FILE = Path(__file__).with_name("questions.toml")


def questions() -> dict[str, list[str]]:
    """Every question with the entries that answer it."""
    loaded: dict[str, list[str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def rank(question: str, wanted: list[str], most: int = 10) -> int | None:
    """The place of the first right entry, from 1 on; None where it is not among the first `most`."""
    found = [hit.id for hit in search(question, most, rules=False).hits]
    return next((number for number, name in enumerate(found, 1) if name in wanted), None)


def interval(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate."""
    if not total:
        return 0.0, 1.0
    z, rate = 1.96, right / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return middle - half, middle + half


def line(what: str, right: int, total: int) -> str:
    """A rate for people."""
    low, high = interval(right, total)
    return f"{what:<10} {right}/{total} = {right / total:.3f}  [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Print the rates and the questions that were not answered in the first five."""
    ranks = {question: rank(question, wanted) for question, wanted in questions().items()}
    for most in (1, 5):
        print(line(f"recall@{most}", sum(place is not None and place <= most for place in ranks.values()), len(ranks)))
    for question, place in ranks.items():
        if place is None or place > 5:
            print(f"missed: {question} ({', '.join(questions()[question])})")


if __name__ == "__main__":
    main()
