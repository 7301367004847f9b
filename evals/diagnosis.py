"""How often a pasted failure is named rightly: `python -m evals.diagnosis` prints rates with 95 % intervals.

Two sets: `failures.toml`, which was there while the entries were written, and `failures_blind.toml`, failing programs
of somebody who had not seen them. A wrong name that is given with certainty is counted apart: it costs a person most.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evals import results
from evals.rates import answers, line, wilson
from tools.diagnose import Cause, Confidence, diagnose
from tools.log_text import read_text

FILE = Path(__file__).with_name("failures.toml")
BLIND = Path(__file__).with_name("failures_blind.toml")


class Failure(BaseModel):
    """What a failing program printed.

    Attributes:
        accepts: entries that state the cause; none where no entry is about it.
        cause: the true cause in plain words, where somebody wrote it down.
        blind: whether its author had not seen the entries.
    """

    text: str
    accepts: list[str]
    name: str = ""
    cause: str = ""
    blind: bool = False


class Scores(BaseModel):
    """What naming came to.

    Attributes:
        known: Failures that an entry names.
        ordinary: Mistakes for which nothing may be named with certainty.
        left_alone: Those of them for which nothing was.
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

    @property
    def total(self) -> int:
        """All failures of the set."""
        return self.known + self.ordinary


def failures() -> list[Failure]:
    """Both sets."""
    blind = tomllib.loads(BLIND.read_text(encoding="utf-8"))["failure"]
    return [
        *(Failure(text=text, accepts=wanted) for text, wanted in answers(FILE).items()),
        *(Failure.model_validate(one) for one in blind),
    ]


def score(chosen: list[Failure]) -> Scores:
    """Name every text of a set."""
    made = Scores()
    for failure in chosen:
        found = diagnose(read_text(failure.text))
        wrong = bool(found) and found[0].entry not in failure.accepts
        certain = bool(found) and found[0].confidence is Confidence.CERTAIN
        if wrong and certain:
            made.certain_and_wrong.append(_short(failure))
        _count(made, failure, found, certain)
    return made


def _count(made: Scores, failure: Failure, found: list[Cause], certain: bool) -> None:
    names = [cause.entry for cause in found]
    if not failure.accepts:
        made.ordinary += 1
        made.left_alone += not certain
        return
    made.known += 1
    made.first_three += bool(set(names[:3]) & set(failure.accepts))
    if names[:1] and names[0] in failure.accepts:
        made.first += 1
    else:
        made.missed[_short(failure)] = names[:3]


def _short(failure: Failure) -> str:
    return failure.name or failure.text.splitlines()[0][:110]


def _rates(made: Scores) -> list[tuple[str, int, int]]:
    return [
        ("top-1", made.first, made.known),
        ("top-3", made.first_three, made.known),
        ("left alone", made.left_alone, made.ordinary),
        ("certain and wrong", len(made.certain_and_wrong), made.total),
    ]


def publish(sets: dict[str, Scores]) -> None:
    """Write the page and its figures; those of the first time the blind set was judged are kept for good."""
    made = {"date": results.today(), "revision": results.revision()}
    now = {**made, "what": "now", "sets": {name: scores.model_dump() for name, scores in sets.items()}}
    kept = [record for record in results.read("diagnosis") if record["what"] == "first sight"]
    first = kept[0] if kept else {**made, "what": "first sight", "sets": {"blind": sets["blind"].model_dump()}}
    results.publish("diagnosis", [first, now], _page(sets, now, first))


def _page(sets: dict[str, Scores], now: dict[str, Any], first: dict[str, Any]) -> str:
    before = Scores.model_validate(first["sets"]["blind"])
    missed = [
        f"- {name}, {text}: named {', '.join(names) or 'nothing'}"
        for name, made in sets.items()
        if name != "all"
        for text, names in made.missed.items()
    ]
    parts = [
        "# Diagnosis of pasted failures",
        _ABOUT,
        "## The blind set at first sight",
        f"Before anything was changed with it in view ({first['date']}, commit {first['revision']}).",
        _table({"blind": before}),
        "Certain and wrong: " + ("; ".join(before.certain_and_wrong) or "none") + ".",
        "## Now",
        "Kinds of failures were mended with the blind set in view, so its figures here are tuned and not held out.",
        _table(sets),
        "## Not named first",
        "\n".join(missed) or "None.",
        f"{now['date']}, commit {now['revision']}.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(sets: dict[str, Scores]) -> str:
    rows = ["| set | what | right | of | share | 95 % interval |", "|---|---|---|---|---|---|"]
    for name, made in sets.items():
        for what, right, total in _rates(made):
            low, high = wilson(right, total)
            share = f"{right / max(total, 1):.3f} | {low:.3f} to {high:.3f}"
            rows.append(f"| {name} | {what} | {right} | {total} | {share} |")
    return "\n".join(rows)


_ABOUT = """Made by `python -m evals.diagnosis --publish`. A failure is right where the first cause named (top-1), or
one of the first three, is an entry that states it. *Left alone*: failures that no entry is about, for which none was
named with certainty. *Certain and wrong*: the first cause was named with certainty and does not state the true one.
The set *known* was there while the entries were written; the texts of *blind* are of failing programs by an author who
had not seen the entries, and what counts as right was set from the causes in plain words."""


def main() -> None:
    """Print the rates and what was not named first; publish them when told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="write evals/results/diagnosis.{json,md}")
    every = failures()
    sets = {
        "known": score([one for one in every if not one.blind]),
        "blind": score([one for one in every if one.blind]),
        "all": score(every),
    }
    for name, made in sets.items():
        print(f"{name}: {made.total} failures")
        for what, right, total in _rates(made):
            print("  " + line(what, right, total))
        for text in made.certain_and_wrong if name != "all" else []:
            print(f"  certain and wrong: {text}")
        for text, names in made.missed.items() if name != "all" else []:
            print(f"  missed: {text}: {', '.join(names) or 'nothing'}")
    if parser.parse_args().publish:
        publish(sets)


if __name__ == "__main__":
    main()
