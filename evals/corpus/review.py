"""How often findings are right, by a person's verdict on a sample, and how many CUDA-isms are found at all."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel

from evals.corpus.study import Record
from tools.findings import Finding

HERE = Path(__file__).parent
VERDICTS, MARKS = HERE / "verdicts.json", HERE / "recall.json"
SIZE = 200
_SEED = "corpus 1"


class Verdict(BaseModel):
    """What a person said about one finding: ``right``, ``wrong`` or ``doubtful``, and why."""

    key: str
    verdict: str
    reason: str = ""


class Marked(BaseModel):
    """One file and the lines with a CUDA-ism, picked by hand from the lines that name CUDA, NCCL, GPUs or precision."""

    package: str
    path: str
    lines: list[int]


def key(package: str, finding: Finding) -> str:
    """What names a finding over runs, as long as the pinned file is the same."""
    return f"{package}:{finding.path}:{finding.line}:{finding.column}:{finding.rule}"


def sample(records: Iterable[Record], size: int = SIZE) -> list[tuple[str, Finding]]:
    """A fixed random sample; findings that come or go with the rules change it by themselves only."""
    keyed = {key(record.name, finding): finding for record in records for finding in record.findings}
    chosen = sorted(keyed, key=lambda k: hashlib.sha256(f"{_SEED} {k}".encode()).digest())[:size]
    return [(k, keyed[k]) for k in sorted(chosen)]


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a share (Wilson 1927), by default at 95 %."""
    if not total:
        return 0.0, 1.0
    share, square = right / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    reach = z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def precision(chosen: Sequence[tuple[str, Finding]], verdicts: Iterable[Verdict]) -> dict[str, dict[str, float]]:
    """Counts and the share that is right, of all findings and of those with a safe fix; doubtful ones are not right."""
    known = {v.key: v.verdict for v in verdicts}
    groups = {"all": chosen, "safe": [(k, f) for k, f in chosen if f.grade == "safe"]}
    found = {}
    for name, group in groups.items():
        said = [known[k] for k, _ in group if k in known]
        right = said.count("right")
        low, high = wilson(right, len(said))
        found[name] = {
            "sampled": len(group),
            "reviewed": len(said),
            "right": right,
            "wrong": said.count("wrong"),
            "doubtful": said.count("doubtful"),
            "low": round(low, 4),
            "high": round(high, 4),
        }
    return found


def recall(records: Iterable[Record], marked: Iterable[Marked]) -> dict[str, object]:
    """How many of the marked lines some finding touches or a fix replaces, and which none does.

    What stands under a test for CUDA has no finding of its own until the test is widened, so fixes count too.
    """
    by_name = {record.name: record for record in records}
    missed, total = [], 0
    for each in marked:
        if each.package not in by_name:
            continue
        seen = {n for f in by_name[each.package].findings if f.path == each.path for n in range(f.line, f.end_line + 1)}
        seen.update(by_name[each.package].rewritten.get(each.path, ()))
        total += len(each.lines)
        missed += [f"{each.package}:{each.path}:{line}" for line in each.lines if line not in seen]
    return {"marked": total, "found": total - len(missed), "missed": missed}


def verdicts() -> list[Verdict]:
    """The kept verdicts."""
    return [Verdict(**each) for each in json.loads(VERDICTS.read_text(encoding="utf-8"))] if VERDICTS.exists() else []


def marks() -> list[Marked]:
    """The kept lists of CUDA-isms."""
    return [Marked(**each) for each in json.loads(MARKS.read_text(encoding="utf-8"))] if MARKS.exists() else []


def sheet(chosen: Sequence[tuple[str, Finding]], said: Iterable[Verdict]) -> str:
    """The sample as a page to review, with the place for the verdict."""
    known = {v.key: v for v in said}
    parts = ["# Findings to review\n"]
    for name, finding in chosen:
        verdict = known.get(name)
        edits = "".join(f"    -> {e.text!r}\n" for e in finding.edits[:6])
        parts.append(
            f"\n{name}  {finding.grade}{' with fix' if finding.fixable else ''}\n    {finding.source.strip()}\n{edits}"
            f"    {finding.message}{f' ({finding.note})' if finding.note else ''}\n"
            f"    verdict: {f'{verdict.verdict} {verdict.reason}' if verdict else ''}\n"
        )
    return "".join(parts)
