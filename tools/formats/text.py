"""A scan's result as text: one finding a line, in the form that editors and terminals link."""

from __future__ import annotations

from collections import Counter

from tools.findings import Finding, Grade, ScanResult, Skipped
from tools.wording import amount


def text(result: ScanResult) -> str:
    """One line a finding, its note below it, then what was skipped, then a count."""
    lines: list[str] = []
    for finding in result.findings:
        lines.append(f"{place(finding)}: {finding.rule} {finding.message} [{finding.grade}]")
        if finding.note:
            lines.append(f"    note: {_one_line(finding.note)}")
    lines += [f"{_skipped_place(skipped)}: skipped: {_one_line(skipped.reason)}" for skipped in result.skipped]
    return "\n".join([*lines, summary(result)])


def place(finding: Finding) -> str:
    """``path:line:column``, in a notebook ``path:cell N:line:column``."""
    cell = f"cell {finding.cell}:" if finding.cell is not None else ""
    return f"{_one_line(finding.path)}:{cell}{finding.line}:{finding.column}"


def summary(result: ScanResult) -> str:
    """The counts, in one sentence."""
    grades = Counter(finding.grade for finding in result.findings)
    total, held = len(result.findings), len({finding.path for finding in result.findings})
    parts = ", ".join(f"{grades[grade]} {grade}" for grade in Grade)
    found = f"{amount(total, 'finding')} in {amount(held, 'file')} ({parts})" if total else "no findings"
    skipped = f"; {len(result.skipped)} skipped" if result.skipped else ""
    return f"{found}; {amount(result.files, 'file')} examined{skipped}"


def _skipped_place(skipped: Skipped) -> str:
    path = _one_line(skipped.path)
    return f"{path}:{skipped.line}" if skipped.line is not None else path


def _one_line(value: str) -> str:
    """The value with control characters written out, so that a file's name cannot forge a line of output."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
