"""Rules applied to one file: what they find, and the file after their fixes."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from tools.code.bound import binds
from tools.code.edits import Edit, Fix, apply, choose
from tools.code.module import Module
from tools.code.notebook import Notebook
from tools.code.sieve import Reader, Sight, sieve
from tools.code.source import SourceFile, Unreadable, parse
from tools.code.tidy import without_orphans
from tools.findings import Finding, Grade, Replacement, Skipped
from tools.project import Project, is_test
from tools.rules import all_rules
from tools.rules.base import Match, PythonRule, Rule, TextRule, fits

MAX_PASSES = 40
"""Passes after which a rule whose fixes keep changing a file is taken to be faulty."""

_UNBOUND = "torch is not, or not always, imported where the fix would be evaluated"
_NOQA = re.compile(r"#\s*noqa\s*:\s*([A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)", re.IGNORECASE)
_CODE = re.compile(r"[A-Z]+[0-9]+")
_PYTHON_SCRIPT = re.compile(rb"#![^\n]*\bpython[0-9.]*\b")


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
    """Whether a file of this name may be one that some rule reads; what it begins with decides on scripts."""
    return is_python(path) or _may_be_script(path) or fits(path, _patterns(_by_kind(tuple(rules))[1]))


def is_python(path: str, data: bytes = b"") -> bool:
    """Whether a file is Python source, a notebook, or a script without a suffix whose first line calls Python."""
    return path.endswith((".py", ".ipynb")) or (_may_be_script(path) and bool(_PYTHON_SCRIPT.match(data)))


def _may_be_script(path: str) -> bool:
    return "." not in path.rpartition("/")[2]


def open_source(path: str, data: bytes) -> SourceFile:
    """The right kind of source for a file.

    Raises:
        Unreadable: if it is not what its name says.
    """
    return Notebook(path, data) if path.endswith(".ipynb") else SourceFile(path, data, python=is_python(path, data))


def applicable(path: str, data: bytes, project: Project, rules: Sequence[Rule]) -> list[Rule]:
    """The rules that read this file, without those the repository's settings leave out here."""
    ignored = project.settings.ignored_in(path)
    reading = _reading(tuple(rules), path, data)
    return [rule for rule in reading if not rule.ID.startswith(ignored)] if ignored else list(reading)


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
    awake, sight = _awake(path, data, applicable(path, data, project, rules))
    if not awake:
        return seen
    try:
        seen.source = open_source(path, data)
        module = None
        if any(isinstance(rule, PythonRule) for rule in awake):
            reader = Reader(seen.source, sight.words)
            everyone = reader.awake(sight.rules)
            awake = [rule for rule in awake if not isinstance(rule, PythonRule) or rule in everyone]
            if not awake:
                return seen
            module = Module(seen.source, project, reader.interest(everyone), whole=whole)
            seen.parsed = True
    except Unreadable as problem:
        seen.skipped.append(Skipped(path=path, reason=problem.reason, line=problem.line))
        return seen
    noqa = "noqa" in seen.source.text or "NOQA" in seen.source.text
    for rule in awake:
        try:
            found = list(_found(rule, seen.source, module, project))
        except Exception as fault:  # noqa: BLE001 - one rule's bug must not cost the user the whole scan; it is reported
            seen.skipped.append(Skipped(path=path, reason=f"{rule.ID} failed here, a fault of ours: {fault!r}"))
            continue
        seen.matches += [(rule, match) for match in found if not (noqa and _silenced(rule, match, seen.source))]
    seen.matches.sort(key=lambda pair: (pair[1].start, pair[1].end, pair[0].ID))
    return seen


def _found(rule: Rule, source: SourceFile, module: Module | None, project: Project) -> Iterator[Match]:
    if isinstance(rule, PythonRule):
        assert module is not None
        yield from usable(rule.check(module), module)
    elif isinstance(rule, TextRule):
        yield from (rule.judge(match, source, project) for match in rule.check(source))


def usable(matches: Iterable[Match], module: Module) -> Iterator[Match]:
    """The matches, without a fix where torch is not bound at its place."""
    for match in matches:
        yield match if match.fix is None or binds(module, match.fix) else replace(match, fix=None, note=_UNBOUND)


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

    A fix that would make the file unparsable, or a rule that never comes to rest, is dropped and told in ``skipped``.
    An import that only the fixed code used goes with it.
    """
    allowed = {Grade.SAFE, Grade.UNSAFE} if unsafe else {Grade.SAFE}
    result = Fixed(data)
    for _ in range(MAX_PASSES):
        seen = examine(path, result.data, project, rules)
        wanted = [(r, m) for r, m in seen.matches if m.fix and (m.grade or r.GRADE) in allowed]
        chosen = set(choose(m.fix for _, m in wanted if m.fix))
        if seen.source is None or not chosen:
            if result.applied:
                result.data = without_orphans(path, data, result.data, project)
            return result
        try:
            new = _edited(path, seen, chosen)
        except Unreadable as problem:
            reason = f"a fix of {', '.join(sorted({r.ID for r, _ in wanted}))} was dropped: {problem.reason}"
            result.skipped.append(Skipped(path=path, reason=reason))
            return result
        result.applied += [finding(r, m, seen.source) for r, m in wanted if m.fix in chosen]
        result.data = new
    reason = (
        f"{', '.join(rule.ID for rule in rules)} would change this file without end, a fault of ours; it is left alone"
    )
    return Fixed(data, skipped=[Skipped(path=path, reason=reason)])


def _edited(path: str, seen: Examined, fixes: set[Fix]) -> bytes:
    """The file with fixes applied.

    Raises:
        Unreadable: if the edits do not fit, or the result is no longer Python.
    """
    assert seen.source is not None
    try:
        text = apply(seen.source.editable, [edit for each in fixes for edit in each.edits], words=seen.parsed)
        new = seen.source.with_text(text)
    except ValueError as error:
        raise Unreadable(f"its edits do not fit ({error}), a fault of ours") from error
    if seen.parsed:
        try:
            parse(open_source(path, new))
        except Unreadable as problem:
            raise Unreadable(f"the result would not parse ({problem.reason})") from problem
    return new


def _reading(rules: tuple[Rule, ...], path: str, data: bytes) -> tuple[Rule, ...]:
    python, text = _by_kind(rules)
    chosen = python if is_python(path, data) else ()
    if chosen and is_test(path):
        chosen = _for_tests(chosen)
    script = _may_be_script(path)
    if not script and not fits(path, _patterns(text)):
        return chosen
    return chosen + tuple(rule for rule in text if rule.reads(path) or (script and rule.interprets(data)))


@lru_cache(maxsize=64)
def _for_tests(rules: tuple[PythonRule, ...]) -> tuple[PythonRule, ...]:
    return tuple(rule for rule in rules if rule.TESTS)


@lru_cache(maxsize=64)
def _patterns(rules: tuple[TextRule, ...]) -> tuple[str, ...]:
    """What names the files of all these rules."""
    return tuple(pattern for rule in rules for pattern in rule.FILES)


@lru_cache(maxsize=64)
def _by_kind(rules: tuple[Rule, ...]) -> tuple[tuple[PythonRule, ...], tuple[TextRule, ...]]:
    return (
        tuple(rule for rule in rules if isinstance(rule, PythonRule)),
        tuple(rule for rule in rules if isinstance(rule, TextRule)),
    )


def _awake(path: str, data: bytes, rules: Sequence[Rule]) -> tuple[list[Rule], Sight]:
    """The rules that can have a finding in a file, and what all rules for Python see there, whichever are asked for.

    By all of them the lines of interest are chosen, so that a rule sees the same nodes whichever others run with it.
    """
    python, text = _by_kind(tuple(rules))
    awake = [
        rule
        for rule in text
        if any(trigger.encode() in data for trigger in rule.TRIGGERS)
        and all(required.encode() in data for required in rule.REQUIRES)
    ]
    if not python:
        return [*awake], Sight([], frozenset())
    sight = sieve(_with_all(python)).look(data, quoted=path.endswith(".ipynb"))
    chosen = set(python)
    return [*(rule for rule in sight.rules if rule in chosen), *awake], sight


@cache
def _with_all(rules: tuple[PythonRule, ...]) -> tuple[PythonRule, ...]:
    return tuple(rule for rule in dict.fromkeys((*all_rules(), *rules)) if isinstance(rule, PythonRule))


def _silenced(rule: Rule, match: Match, source: SourceFile) -> bool:
    """Whether a comment ``# noqa: TPU101`` (or a prefix of the id) stands on the first or last line of the match.

    A bare ``# noqa`` is meant for other tools and silences nothing here.
    """
    for offset in {match.start, max(match.start, match.end - 1)}:
        comment = _NOQA.search(source.line(source.position(offset)[0]))
        if comment and any(rule.ID.startswith(code) for code in _CODE.findall(comment.group(1).upper())):
            return True
    return False


@contextmanager
def without_collector() -> Iterator[None]:
    """Syntax trees are large and free of use after each file; the cyclic collector would walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
