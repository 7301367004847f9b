"""Scans the private tree and, where no entry was given, chooses one by what it reaches."""

from __future__ import annotations

from collections import Counter

from langgraph.runtime import Runtime

from agents.context import Context
from agents.entries import discover
from agents.reach import Reach
from agents.runs import write_whole
from agents.state import Assessment, Entry, State
from tools.findings import Grade, ScanResult
from tools.scan import scan
from tools.wording import amount


def assess(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Write findings.json, count them, and settle the entries."""
    context = runtime.context
    result = _scan(state, context)
    write_whole(context.folder.findings, result.model_dump_json(indent=1))
    assessment = count(result)
    context.progress.done("assess", describe(assessment))
    updates: dict[str, object] = {"assessment": assessment}
    if not state.entries:
        root = context.root(state)
        found = discover(root, Reach(root), {finding.path for finding in result.findings})
        updates |= {"entries": found[:1], "alternatives": found[1:]}
        context.progress.done("entry", _choice(found))
    return updates


def _scan(state: State, context: Context) -> ScanResult:
    def tell(done: int, total: int) -> None:
        context.progress.working("assess", f"{done} of {amount(total, 'file')}")

    return scan(context.root(state), select=state.settings.select, ignore=state.settings.ignore, on_progress=tell)


def count(result: ScanResult) -> Assessment:
    """The counts of a scan."""
    grades = Counter(finding.grade for finding in result.findings)
    return Assessment(
        files=result.files,
        parsed=result.parsed,
        findings=len(result.findings),
        safe=grades[Grade.SAFE],
        unsafe=grades[Grade.UNSAFE],
        advice=grades[Grade.ADVICE],
        skipped=len(result.skipped),
    )


def describe(counts: Assessment) -> str:
    """One line for a person."""
    line = f"{amount(counts.files, 'file')}, {amount(counts.findings, 'finding')}"
    if counts.findings:
        line += f": {counts.safe} safe, {counts.unsafe} unsafe, {counts.advice} advice"
    return line + (f"; {counts.skipped} not examined" if counts.skipped else "")


def _choice(found: list[Entry]) -> str:
    if not found:
        return 'none found: nothing will be run. Give one with --entry "python ..."'
    best, *others = found
    line = f"{best.command}  ({best.origin}; {best.why})"
    if others:
        line += f"\nalso found: {'; '.join(entry.command for entry in others[:3])}"
    return line
