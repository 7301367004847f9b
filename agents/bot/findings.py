"""Findings of a scan as a list in a comment, as annotations of a check run, and as what a change added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tools.findings import Finding, Grade
from tools.wording import amount

MOST_LISTED = 100
MOST_ANNOTATIONS = 500
_LEVELS = {Grade.SAFE: "warning", Grade.UNSAFE: "warning", Grade.ADVICE: "notice"}


def serious(findings: Iterable[Finding]) -> list[Finding]:
    """Those that need a change."""
    return [finding for finding in findings if finding.grade is not Grade.ADVICE]


def added(head: Sequence[Finding], base: Sequence[Finding]) -> list[Finding]:
    """Findings of `head` that `base` does not have; a line that only moved is the same."""
    known = Counter(_key(finding) for finding in base)
    fresh: list[Finding] = []
    for finding in head:
        if known[_key(finding)] > 0:
            known[_key(finding)] -= 1
        else:
            fresh.append(finding)
    return fresh


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.path, finding.source.strip()


def as_annotations(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Annotations of a check run."""
    return [
        {
            "path": finding.path,
            "start_line": finding.file_line or finding.line,
            "end_line": finding.file_line or max(finding.line, finding.end_line),
            "annotation_level": _LEVELS[finding.grade],
            "title": f"{finding.rule} ({finding.grade.value})",
            "message": f"{finding.message}{f'. {finding.note}' if finding.note else ''}"[:4000],
        }
        for finding in findings[:MOST_ANNOTATIONS]
    ]


def listed(findings: Sequence[Finding]) -> str:
    """A numbered list in Markdown; the numbers are what `fix` and `explain` take."""
    lines = [f"{number}. {_line(finding)}" for number, finding in enumerate(findings[:MOST_LISTED], 1)]
    if len(findings) > MOST_LISTED:
        lines.append(f"\nand {amount(len(findings) - MOST_LISTED, 'more finding')}")
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    place = f"{code(finding.path)}:{finding.line}"
    return f"`{place}` {finding.rule} ({finding.grade.value}): {text(finding.message)}"


def text(said: str) -> str:
    """Text of a repository in Markdown: one line, no HTML, no mention, no link of its own."""
    flat = " ".join(said.split())[:1000]
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!" else letter for letter in flat).replace("@", "@\u200b")


def code(said: str) -> str:
    """Text of a repository inside a code span."""
    return " ".join(said.replace("`", "'").split())[:300]


def block(said: str) -> str:
    """Text of a repository as a block of its own, whatever fences it holds."""
    kept = said[-6000:].replace("\r", "")
    fence = "`" * max(3, 1 + max((len(run) for run in _ticks(kept)), default=0))
    return f"{fence}\n{kept}\n{fence}"


def _ticks(said: str) -> Iterable[str]:
    run = ""
    for letter in said:
        run = run + letter if letter == "`" else ""
        if run:
            yield run
