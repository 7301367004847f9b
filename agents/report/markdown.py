"""Writes a report for people, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents.report.model import Change, Left, Report
from agents.state import RunRecord, Verdict
from tools.wording import amount


def render(report: Report) -> str:
    """The whole report as Markdown."""
    parts = [*_head(report), *_stages(report), *_runs(report), *_diagnoses(report), *_assistance(report)]
    parts += [*_changes(report), *_left(report), *_next(report), *_facts(report)]
    return "\n".join(parts).rstrip() + "\n"


def _head(report: Report) -> Iterator[str]:
    yield f"# Migration {report.run} of {_text(report.source)}"
    yield ""
    reached = "no stage passed" if report.headline == "none" else f"every stage up to **{report.headline}** passed"
    yield f"Result: {reached}."
    device = report.device or {}
    yield f"Device: {device.get('name') or 'none'}" + (f" ({device['why']})" if device.get("why") else "")
    yield ""
    yield from (f"- {_text(note)}" for note in report.notes)
    yield ""


def _stages(report: Report) -> Iterator[str]:
    yield "## Stages"
    yield ""
    yield "| stage | verdict | reason |"
    yield "|---|---|---|"
    for verdict in report.verdicts:
        owner = f" (owner: {verdict.owner})" if verdict.owner else ""
        yield f"| {verdict.stage} | {verdict.result}{owner} | {_cell(verdict.reason)} |"
    yield ""
    yield from _comparisons(report.verdicts)
    yield from _evidence(report.verdicts)


def _comparisons(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """How far the migrated program is from the original, and every difference seen."""
    compared = [(verdict, name, one) for verdict in verdicts for name, one in verdict.figures.items() if one.compared]
    if compared:
        yield "Error ratios (1 is what rounding alone does to the original):"
        yield ""
        yield "| stage | comparison | compared | bit for bit | largest ratio | relative error | where |"
        yield "|---|---|---:|---:|---:|---:|---|"
        for verdict, name, one in compared:
            row = (verdict.stage, name, one.compared, one.identical, _ratio(one.worst), _ratio(one.relative))
            yield f"| {' | '.join(str(cell) for cell in row)} | {_cell(one.worst_at)} |"
        yield ""
    for verdict in verdicts:
        if len(verdict.problems) > 1:
            yield f"All differences seen by `{verdict.stage}`, the first cause in front:"
            yield ""
            yield from (f"- {_text(problem.message)}" for problem in verdict.problems)
            yield ""


def _ratio(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _evidence(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.evidence:
            yield f"Evidence for `{verdict.stage}`:"
            yield ""
            yield from _block(verdict.evidence)


def _runs(report: Report) -> Iterator[str]:
    if not report.runs:
        return
    yield "## Runs"
    yield ""
    for run in report.runs:
        yield f"- `{run.entry}` (attempt {run.attempt}): {_text(run.explanation)}"
        yield f"  {_numbers(run)}"
    yield ""


def _numbers(run: RunRecord) -> str:
    steps = f"{run.device_steps} of {amount(run.steps, 'step')} on the device"
    parts = [f"outcome {run.outcome}", f"{run.duration:.1f} s", steps]
    if run.losses:
        parts.append(f"loss {run.losses[0]:.4g} to {run.losses[-1]:.4g}")
    if run.warnings:
        parts.append(amount(len(run.warnings), "warning"))
    parts.append("sandboxed" if run.sandboxed else f"not sandboxed ({run.sandbox_note})")
    return "; ".join(parts)


def _diagnoses(report: Report) -> Iterator[str]:
    if not report.diagnoses:
        return
    yield "## Diagnoses"
    yield ""
    for diagnosis in report.diagnoses:
        place = f" at `{diagnosis.where}`" if diagnosis.where else ""
        yield f"- **{diagnosis.kind}** (owner: {diagnosis.owner}){place}: {_text(diagnosis.cause)}"
        if diagnosis.remedy:
            yield f"  Remedy: {_text(diagnosis.remedy)}"
        if diagnosis.knowledge:
            rules = f"; found in the source by {', '.join(diagnosis.rules)}" if diagnosis.rules else ""
            yield f"  Known as `{diagnosis.knowledge}` ({diagnosis.confidence}){rules}."
    yield ""


def _assistance(report: Report) -> Iterator[str]:
    made = report.assistance
    if made is None:
        return
    yield "## The language model"
    yield ""
    became = "kept: it passed the same verification" if made.kept else "dropped" if made.dropped else "none to judge"
    yield f"{_text(made.model)}; its work ended: {_text(made.stop)}; its change: {became}."
    if made.reason:
        yield f"Reason: {_text(made.reason)}"
    yield ""
    yield from (f"- `{commit.sha[:12]}` {_text(commit.title)} ({', '.join(commit.files)})" for commit in made.commits)
    if made.said:
        yield f"- its own account, which is no evidence: {_text(made.said)}"
    if made.trajectory:
        yield f"- everything it did: `{made.trajectory}`"
    yield ""


def _changes(report: Report) -> Iterator[str]:
    yield "## What was changed"
    yield ""
    if not report.changes:
        yield "Nothing to change."
        yield ""
        return
    for commit in report.commits:
        yield f"### {commit.rule}: {_text(commit.title)} (`{commit.sha[:12]}`)"
        yield ""
        yield from (f"- {_change(change)}" for change in report.changes if change.commit == commit.sha)
        yield ""


def _change(change: Change) -> str:
    note = f" {_sentence(change.note)}" if change.note else ""
    return f"`{_place(change)}` ({change.grade}): {_sentence(change.message)}{note}"


def _left(report: Report) -> Iterator[str]:
    yield "## What is left for a person"
    yield ""
    if not report.left and not report.not_examined:
        yield "Nothing."
    yield from (_left_line(item) for item in report.left)
    for file in report.not_examined:
        yield f"- `{file.path}` was not examined: {_text(file.reason)}"
    yield ""


def _left_line(item: Left) -> str:
    note = f" {_sentence(item.note)}" if item.note else ""
    return f"- `{_place(item)}` {item.rule} ({item.grade}): {_sentence(item.message)} Left: {_sentence(item.why)}{note}"


def _sentence(text: str) -> str:
    said = _text(text)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _place(item: Change | Left) -> str:
    return f"{item.path}{f' cell {item.cell}' if item.cell else ''}:{item.line}"


def _next(report: Report) -> Iterator[str]:
    delivery = report.delivery
    yield "## Next"
    yield ""
    if delivery.note:
        yield _text(delivery.note)
        yield ""
    for title, command in (("Review", delivery.review), ("Merge", delivery.merge), ("Discard", delivery.discard)):
        if command:
            yield f"{title}:"
            yield ""
            yield from _block([command])


def _facts(report: Report) -> Iterator[str]:
    yield "## Facts"
    yield ""
    yield from (f"- entry: `{e.command}` ({_text(e.origin)}; {_text(e.why)})" for e in report.entries)
    yield f"- base: `{report.base}`" + (f", folder `{report.scope}`" if report.scope else "")
    yield f"- versions: {', '.join(f'{name} {number}' for name, number in report.versions.items())}"
    yield f"- seconds: {', '.join(f'{name} {seconds:.1f}' for name, seconds in report.durations.items())}"


def _block(lines: Iterable[str]) -> Iterator[str]:
    yield "```"
    yield from lines
    yield "```"
    yield ""


def _text(text: str) -> str:
    """Text of others on one line, with nothing that Markdown would take for HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")
