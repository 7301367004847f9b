"""How often a pasted failure is named rightly: `python -m evals.diagnosis` prints rates with 95 % intervals.

The set is `failures.toml`. A wrong name that is given with certainty is counted apart: it costs a person most.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from evals.rates import answers, line
from tools.diagnose import Cause, Confidence, diagnose
from tools.log_text import read_text

FILE = Path(__file__).with_name("failures.toml")


class Scores(BaseModel):
    """What naming came to.

    Attributes:
        known: Failures that an entry names.
        ordinary: Mistakes for which nothing may be named with certainty.
        missed: Failures whose first name is wrong, with what was named.
        certain_and_wrong: Texts whose first name is wrong and certain.
    """

    known: int = 0
    first: int = 0
    first_three: int = 0
    ordinary: int = 0
    left_alone: int = 0
    missed: dict[str, list[str]] = {}
    certain_and_wrong: list[str] = []


def score() -> Scores:
    """Name every text of the set."""
    made = Scores()
    for text, wanted in answers(FILE).items():
        found = diagnose(read_text(text))
        wrong = bool(found) and found[0].entry not in wanted
        if wrong and found[0].confidence is Confidence.CERTAIN:
            made.certain_and_wrong.append(text)
        _count(made, text, wanted, found)
    return made


def _count(made: Scores, text: str, wanted: list[str], found: list[Cause]) -> None:
    names = [cause.entry for cause in found]
    if not wanted:
        made.ordinary += 1
        made.left_alone += not names
        return
    made.known += 1
    made.first_three += bool(set(names[:3]) & set(wanted))
    if names[:1] and names[0] in wanted:
        made.first += 1
    else:
        made.missed[text] = names[:3]


def main() -> None:
    """Print the rates, and what was not named first."""
    made = score()
    print(line("top-1", made.first, made.known))
    print(line("top-3", made.first_three, made.known))
    print(line("left alone", made.left_alone, made.ordinary))
    print(line("certain and wrong", len(made.certain_and_wrong), made.known + made.ordinary))
    for text, names in made.missed.items():
        print(f"missed: {text.splitlines()[0][:110]}: {', '.join(names) or 'nothing'}")


if __name__ == "__main__":
    main()
