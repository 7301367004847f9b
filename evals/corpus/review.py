"""How often findings are right, by a person's verdict on a sample, and how many CUDA-isms are found at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from evals.corpus.study import Record
from evals.rates import wilson
from tools.findings import Finding, Grade

HERE = Path(__file__).parent
MARKS = HERE / "recall.json"
SIZE = 200


@dataclass(frozen=True)
class Round:
    """One random sample of findings that a person judged; the verdicts are in ``verdicts-N.json``.

    Attributes:
        number: N.
        seed: what it was drawn with.
        revision: of the rules that made the findings.
        how: who judged and what was done with it, as the page says it.
    """

    number: int
    seed: str
    revision: str
    how: str


ROUNDS = (
    Round(1, "corpus 1", "e9d784507a6d", "by the rules' author, who changed rules for what was wrong in it"),
    Round(2, "review 2", "bde64d7c64ac", "by somebody who had written no rule; every kind of fault was mended after"),
    Round(
        3,
        "corpus 3",
        "b86a0d3e2e39",
        "by the same, who had changed rules by then; of findings not read before; mended after",
    ),
    Round(4, "corpus 4", "9c3b5005a1d2", "by the same; shares 34 findings with the one before; mended after"),
    Round(5, "corpus 5", "8109416578e6", "by the same; of findings that nobody had read; mended after"),
    Round(
        6,
        "corpus 6",
        "876e0a08c215",
        "by another, of findings that nobody had read: 50 in the packages of before, 150 in 24 packages and "
        "repositories that no rule had been tried on; code for tests of CUDA alone counts as wrong; mended after",
    ),
    Round(
        7,
        "corpus 7",
        "9a6c53ecdab9",
        "by somebody who had seen none of the work on the rules, of findings that nobody had read: 143 in packages "
        "that came with the sixth sample, 57 in those of before; judged by what all safe fixes together leave",
    ),
)
"""Oldest first; the last was judged before any rule was changed for it."""


class Verdict(BaseModel):
    """What a person said about one finding: ``right``, ``wrong`` or ``doubtful``, and why.

    ``only_safe`` marks findings that were added to a sample so that it has enough safe fixes.
    """

    key: str
    grade: Grade
    verdict: str
    reason: str = ""
    only_safe: bool = False


class Marked(BaseModel):
    """One file and the lines with a CUDA-ism, picked by hand before a scan was looked at.

    ``fine`` says of some lines why nothing needs to be done about them, as was seen when they were missed.
    """

    package: str
    path: str
    lines: list[int]
    round: int = 1
    fine: dict[int, str] = {}


def key(package: str, finding: Finding) -> str:
    """What names a finding over runs, as long as the pinned file is the same."""
    return f"{package}:{finding.path}:{finding.line}:{finding.column}:{finding.rule}"


def sample(
    records: Iterable[Record], seed: str, size: int = SIZE, without: Container[str] = ()
) -> list[tuple[str, Finding]]:
    """A fixed random sample; findings that come or go with the rules change it by themselves only.

    Args:
        records: what was found.
        seed: any text.
        size: how many.
        without: keys of findings that were judged before.
    """
    keyed = {k: f for record in records for f in record.findings if (k := key(record.name, f)) not in without}
    chosen = sorted(keyed, key=lambda k: hashlib.sha256(f"{seed} {k}".encode()).digest())[:size]
    return [(k, keyed[k]) for k in sorted(chosen)]


def precision(said: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    """Counts and the share that is right, of all findings and of those with a safe fix; doubtful ones are not right."""
    groups = {"all": [v for v in said if not v.only_safe], "safe": [v for v in said if v.grade == Grade.SAFE]}
    found = {}
    for name, group in groups.items():
        verdicts_ = [v.verdict for v in group]
        low, high = wilson(verdicts_.count("right"), len(group))
        found[name] = {
            "reviewed": len(group),
            **{kind: verdicts_.count(kind) for kind in ("right", "wrong", "doubtful")},
            "low": round(low, 4),
            "high": round(high, 4),
        }
    return found


def recall(records: Iterable[Record], marked: Iterable[Marked]) -> dict[str, object]:
    """How many of the marked lines some finding touches or a fix replaces, and which none does.

    What stands under a test for CUDA has no finding of its own until the test is widened, so fixes count too. Lines
    that turned out to need nothing are counted apart.
    """
    by_name = {record.name: record for record in records}
    missed, fine, total, files = [], 0, 0, 0
    for each in marked:
        if each.package not in by_name:
            continue
        seen = {n for f in by_name[each.package].findings if f.path == each.path for n in range(f.line, f.end_line + 1)}
        seen.update(by_name[each.package].rewritten.get(each.path, ()))
        files += 1
        total += len(each.lines)
        fine += sum(1 for line in each.lines if line not in seen and line in each.fine)
        missed += [f"{each.package}:{each.path}:{n}" for n in each.lines if n not in seen and n not in each.fine]
    return {"files": files, "marked": total, "found": total - fine - len(missed), "fine": fine, "missed": missed}


def verdicts(number: int) -> list[Verdict]:
    """The kept verdicts of a round."""
    return [Verdict(**each) for each in json.loads((HERE / f"verdicts-{number}.json").read_text(encoding="utf-8"))]


def marks(number: int) -> list[Marked]:
    """The kept lists of CUDA-isms of a round."""
    kept = [Marked(**each) for each in json.loads(MARKS.read_text(encoding="utf-8"))]
    return [mark for mark in kept if mark.round == number]


def sheet(chosen: Sequence[tuple[str, Finding]]) -> str:
    """A sample as a page to review, with the place for the verdict."""
    parts = ["# Findings to review\n"]
    for name, finding in chosen:
        edits = "".join(f"    -> {e.text!r}\n" for e in finding.edits[:6])
        parts.append(
            f"\n{name}  {finding.grade}{' with fix' if finding.fixable else ''}\n    {finding.source.strip()}\n{edits}"
            f"    {finding.message}{f' ({finding.note})' if finding.note else ''}\n    verdict:\n"
        )
    return "".join(parts)
