"""Rules applied to one file: what they find, and the file after their fixes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tools.edits import Edit, apply, choose
from tools.findings import Finding, Grade, Replacement, Skipped
from tools.module import Module
from tools.notebook import Notebook
from tools.project import Project
from tools.rules.base import Match, PythonRule, Rule, TextRule, interest
from tools.source import SourceFile, Unreadable, parse

MAX_PASSES = 40
"""Passes after which a rule whose fixes keep changing a file is taken to be faulty."""

_NOQA = re.compile(r"#\s*noqa:\s*([A-Z0-9, ]+)")


@dataclass
class Examined:
    """One file as the rules see it.

    Attributes:
        source: the file, None where no rule reads it or it cannot be read.
        parsed: whether it was parsed as Python.
        matches: what was found, by position.
        skipped: why the file, or a rule on it, was left out.
    """

    source: SourceFile | None = None
    parsed: bool = False
    matches: list[tuple[Rule, Match]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def reads(path: str, rules: Sequence[Rule]) -> bool:
    """Whether any of the rules reads files of this name."""
    return is_python(path) or any(isinstance(rule, TextRule) and rule.reads(path) for rule in rules)


def is_python(path: str) -> bool:
    """Whether a path is Python source or a notebook."""
    return path.endswith((".py", ".ipynb"))


def open_source(path: str, data: bytes) -> SourceFile:
    """The right kind of source for a path.

    Raises:
        Unreadable: if it is not what its name says.
    """
    return Notebook(path, data) if path.endswith(".ipynb") else SourceFile(path, data, python=path.endswith(".py"))


def examine(path: str, data: bytes, project: Project, rules: Sequence[Rule], *, whole: bool = True) -> Examined:
    """Runs the rules over one file's bytes.

    Args:
        path: decides what kind of file it is.
        data: its bytes.
        project: facts about the repository.
        rules: those to run.
        whole: see ``Module``.
    """
    seen = Examined()
    awake = triggered([rule for rule in rules if _applies(rule, path)], data)
    if not awake:
        return seen
    try:
        seen.source = open_source(path, data)
        module = None
        if any(isinstance(rule, PythonRule) for rule in awake):
            module = Module(seen.source, project, _interest(tuple(awake)), whole=whole)
            seen.parsed = True
    except Unreadable as problem:
        seen.skipped.append(Skipped(path=path, reason=problem.reason, line=problem.line))
        return seen
    for rule in awake:
        try:
            found = list(rule.check(module) if isinstance(rule, PythonRule) else rule.check(seen.source, project))  # type: ignore[arg-type,attr-defined]
        except Exception as fault:  # noqa: BLE001 - one rule's bug must not cost the user the whole scan; it is reported
            seen.skipped.append(Skipped(path=path, reason=f"{rule.ID} failed here, a fault of ours: {fault!r}"))
            continue
        seen.matches += [(rule, match) for match in found if not _silenced(rule, match, seen.source)]
    seen.matches.sort(key=lambda pair: (pair[1].start, pair[1].end, pair[0].ID))
    return seen


def finding(rule: Rule, match: Match, source: SourceFile) -> Finding:
    """A match as the user sees it."""
    line, column = source.position(match.start)
    end_line, end_column = source.position(match.end)
    cell = file_line = None
    edits: list[Replacement] = []
    text = source.line(line)
    if isinstance(source, Notebook):
        cell, within = source.cell(match.start)
        file_line = source.file_line(match.start)
        line, end_line = within, within + end_line - line
    elif match.fix:
        edits = [_replacement(edit, source) for edit in sorted(match.fix.edits)]
    note = match.note or (match.fix.note if match.fix else None)
    return Finding(
        rule=rule.ID,
        family=rule.FAMILY,
        grade=match.grade or rule.GRADE,
        path=source.relative,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        message=match.message or rule.MESSAGE,
        source=text,
        fixable=match.fix is not None,
        note=note,
        cell=cell,
        file_line=file_line,
        edits=edits,
    )


def _replacement(edit: Edit, source: SourceFile) -> Replacement:
    line, column = source.position(edit.start)
    end_line, end_column = source.position(edit.end)
    return Replacement(line=line, column=column, end_line=end_line, end_column=end_column, text=edit.replacement)


@dataclass
class Fixed:
    """A file after fixing.

    Attributes:
        data: its bytes.
        applied: the findings whose fixes were applied.
        skipped: fixes that were dropped because the result would not parse.
    """

    data: bytes
    applied: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def fix(path: str, data: bytes, project: Project, rules: Sequence[Rule], *, unsafe: bool = False) -> Fixed:
    """Applies the rules' fixes to one file until nothing is left to fix.

    Args:
        path: for messages and for the kind of file.
        data: its bytes.
        project: facts about the repository.
        rules: those to apply.
        unsafe: whether fixes of grade unsafe are applied too.

    Raises:
        AssertionError: if a rule never comes to rest.
    """
    allowed = {Grade.SAFE, Grade.UNSAFE} if unsafe else {Grade.SAFE}
    result = Fixed(data)
    for _ in range(MAX_PASSES):
        seen = examine(path, result.data, project, rules)
        if seen.source is None:
            return result
        wanted = [(r, m) for r, m in seen.matches if m.fix and (m.grade or r.GRADE) in allowed]
        chosen = set(choose(m.fix for _, m in wanted if m.fix))
        if not chosen:
            return result
        edits = [edit for each in chosen for edit in each.edits]
        new = seen.source.with_text(apply(seen.source.editable, edits))
        problem = _unparsable(path, new) if seen.parsed else None
        if problem:
            result.skipped.append(Skipped(path=path, reason=f"a fix was dropped, it would not parse: {problem}"))
            return result
        result.applied += [finding(r, m, seen.source) for r, m in wanted if m.fix in chosen]
        result.data = new
    raise AssertionError(f"{[rule.ID for rule in rules]} do not come to rest on {path}")


def _unparsable(path: str, data: bytes) -> str | None:
    try:
        parse(open_source(path, data))
    except Unreadable as problem:
        return problem.reason
    return None


def _applies(rule: Rule, path: str) -> bool:
    return is_python(path) if isinstance(rule, PythonRule) else isinstance(rule, TextRule) and rule.reads(path)


def triggered(rules: Sequence[Rule], data: bytes) -> list[Rule]:
    """The rules that can have a finding in the file at all; each word is looked for once."""
    present: dict[str, bool] = {}
    cuda = b"cuda" in data

    def holds(word: str) -> bool:
        if word not in present:
            present[word] = (cuda or "cuda" not in word) and word.encode() in data
        return present[word]

    return [rule for rule in rules if any(map(holds, rule.TRIGGERS))]


@lru_cache(maxsize=256)
def _interest(rules: tuple[Rule, ...]) -> tuple[str, ...]:
    return interest(rules)


def _silenced(rule: Rule, match: Match, source: SourceFile) -> bool:
    line, _ = source.position(match.start)
    comment = _NOQA.search(source.line(line))
    return bool(comment) and any(rule.ID.startswith(code) for code in re.findall(r"[A-Z]+\d+", comment.group(1)))  # type: ignore[union-attr]
