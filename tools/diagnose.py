"""From how a run ended to its likely causes, by what is known of such failures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, Field

from tools.knowledge import Blame, Entry, Symptom, entries
from tools.run import RunOutput

_PLATEAU = 5
"""Fewest equal losses in a row, from the first on, that count as standing still."""


class Confidence(StrEnum):
    """How far the evidence goes: the error itself says it, a log line or warning does, or only the program's output."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Cause(BaseModel):
    """A known cause that fits a run."""

    entry: str = Field(description="id of the knowledge entry")
    title: str
    owner: Blame
    cause: str
    remedy: str
    rules: list[str] = Field(default=[], description="rules that find it in the source")
    sources: list[str] = []
    evidence: str = Field(description="the line that was recognised")
    lines: list[str] = Field(default=[], description="every line that the recognised symptom asked for")
    confidence: Confidence


_TRUST = {
    "exception": Confidence.CERTAIN,
    "native": Confidence.LIKELY,
    "warning": Confidence.LIKELY,
    "losses": Confidence.POSSIBLE,
    "outcome": Confidence.POSSIBLE,
    "output": Confidence.POSSIBLE,
    "source": Confidence.POSSIBLE,
}
_ORDER = list(Confidence)
_PRINTED_ERROR = re.compile(r"error|exception|fail|warning|skip", re.IGNORECASE)
"""Lines of output that may tell of an error which the program caught, and went on or died of something else."""


def diagnose(run: RunOutput, known: Sequence[Entry] | None = None) -> list[Cause]:
    """Name the known causes that fit a run, the best supported first.

    Args:
        run: How the program ended.
        known: Entries to choose from; those of the product by default.

    Returns:
        Causes by confidence; specific ones before general ones, and longer evidence before shorter. Empty where
        nothing known fits.
    """
    texts = _texts(run)
    printed = {**{place: [] for place in texts}, "exception": [t for t in texts["output"] if _PRINTED_ERROR.search(t)]}
    found: list[tuple[tuple[int, bool, int, str], Cause]] = []
    for entry in entries() if known is None else known:
        best = _best(entry, texts) or _swallowed(entry, printed)
        if best is not None:
            confidence, lines, length = best
            rank = (_ORDER.index(confidence), entry.general, -length, entry.id)
            found.append((rank, _cause(entry, lines, confidence)))
    return [cause for _, cause in sorted(found, key=lambda pair: pair[0])]


def _best(entry: Entry, texts: dict[str, list[str]]) -> tuple[Confidence, list[str], int] | None:
    """The best supported of an entry's symptoms."""
    return min(
        (match for symptom in entry.symptoms if (match := _match(symptom, texts))),
        key=lambda match: (_ORDER.index(match[0]), -match[2]),
        default=None,
    )


def _swallowed(entry: Entry, printed: dict[str, list[str]]) -> tuple[Confidence, list[str], int] | None:
    """The same in what the program printed of an error it caught: no more than possible."""
    match = _best(entry, printed)
    return None if match is None else (Confidence.POSSIBLE, match[1], match[2])


def _cause(entry: Entry, lines: list[str], confidence: Confidence) -> Cause:
    return Cause(
        entry=entry.id,
        title=entry.title,
        owner=entry.owner,
        cause=entry.cause,
        remedy=entry.remedy,
        rules=list(entry.rules),
        sources=list(entry.sources),
        evidence=lines[0],
        lines=lines,
        confidence=confidence,
    )


def _match(symptom: Symptom, texts: dict[str, list[str]]) -> tuple[Confidence, list[str], int] | None:
    """The confidence, the lines that fit and how much of them, where everything the symptom asks for is there."""
    found: list[tuple[int, str, int]] = []
    for place, pattern in symptom.places().items():
        hit = next(((line, m) for line in texts[place] if (m := re.search(pattern, line, re.IGNORECASE))), None)
        if hit is None:
            return None
        line, match = hit
        found.append((_ORDER.index(_TRUST[place]), _shown(line, match), len(match[0])))
    found.sort(key=lambda item: item[0])
    return _ORDER[found[0][0]], [line for _, line, _ in found], sum(length for *_, length in found)


def _shown(line: str, match: re.Match[str]) -> str:
    """The part of a long text that was recognised, as one line."""
    start = line.rfind("\n", 0, match.start()) + 1
    end = line.find("\n", match.end())
    text = " ".join(line[start : end if end >= 0 else None].split())
    return text if len(text) <= 300 else text[:297] + "..."


def _texts(run: RunOutput) -> dict[str, list[str]]:
    """What a run left behind, by the places symptoms ask for."""
    exception = run.exception or {}
    said = f"{exception.get('type', '')}: {exception.get('message', '')}" if exception else ""
    frames = [*(exception.get("frames") or [])[-1:], exception.get("where") or {}]
    places = [f"{frame.get('file', '')}: {frame.get('source', '')}" for frame in frames if frame]
    return {
        "exception": [text for text in (said, *map(str, exception.get("causes") or [])) if text],
        "source": places,
        "warning": [f"{w.get('kind', '')}: {w.get('message', '')}" for w in run.warnings],
        "native": [*run.native_tail],
        "output": run.output_tail.splitlines(),
        "losses": [text] if (text := _losses(run.losses)) else [],
        "outcome": [run.outcome, *([run.signal] if run.signal else [])],
    }


def _losses(losses: Sequence[float]) -> str:
    """What the losses did, where it is a sign of something."""
    for step, loss in enumerate(losses, 1):
        if not math.isfinite(loss):
            return f"{'nan' if math.isnan(loss) else 'infinite'} from step {step}"
    if len(losses) >= _PLATEAU and len(set(losses)) == 1:
        return f"constant over {len(losses)} steps"
    return ""
