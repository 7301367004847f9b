"""Applies rules to a tree, one rule after another, so that each can be its own commit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from tools.choice import choose
from tools.code.source import Unreadable
from tools.engine import examine, fix, reads, without_collector
from tools.findings import Finding, Skipped
from tools.project import Project
from tools.rules.base import Rule

MAX_ROUNDS = 6
"""Rounds over all rules; a fix may uncover a place for a rule with a lower id."""


class PatchStep(BaseModel):
    """What one rule changed.

    Attributes:
        rule: its id.
        title: its message, fit for a commit's first line.
        files: new contents by POSIX path.
        findings: the places it changed, as they stood before.
        skipped: fixes that were dropped, and why.
    """

    rule: str
    title: str
    files: dict[str, bytes]
    findings: list[Finding]
    skipped: list[Skipped] = []


def patch_steps(
    root: Path, *, unsafe: bool = False, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> Iterator[PatchStep]:
    """Rewrites the tree in place; each step's files are on disk when it is yielded.

    Call it on a private copy, never on the user's checkout. On a tree it has already been through, it yields nothing.

    Args:
        root: the folder to rewrite.
        unsafe: whether fixes of grade unsafe are applied too.
        select: rule ids or prefixes (all if empty).
        ignore: rule ids or prefixes to leave out.

    Raises:
        UnknownRule: if a code matches no rule.
        UserError: if the folder's `torchtpu.toml` cannot be used.
        Unreadable: if a file disappears meanwhile.
    """
    settings, rules = choose(root, select, ignore)
    for _ in range(MAX_ROUNDS):
        changed = False
        pending = _Pending(Project(root, settings), rules)
        for rule in rules:
            step = _apply(rule, pending, unsafe)
            if step is not None:
                changed = True
                yield step
        if not changed:
            return


class _Pending:
    """Which rules find something in which files, so that a rule is tried only where it has work.

    Args:
        project: the tree.
        rules: all that are applied in a round.
    """

    def __init__(self, project: Project, rules: Sequence[Rule]) -> None:
        self.project = project
        self.rules = rules
        self.found: dict[str, set[str]] = {}
        for path in project.paths:
            if reads(path, rules):
                with contextlib.suppress(Unreadable):
                    self.look(path, project.read(path))

    def look(self, path: str, data: bytes) -> None:
        """Notes which rules have a fix for this file."""
        with without_collector():
            seen = examine(path, data, self.project, self.rules)
            self.found[path] = {rule.ID for rule, match in seen.matches if match.fix}

    def files(self, rule: Rule) -> list[str]:
        """The files a rule has fixes for."""
        return [path for path, ids in self.found.items() if rule.ID in ids]


def _apply(rule: Rule, pending: _Pending, unsafe: bool) -> PatchStep | None:
    project = pending.project
    step = PatchStep(rule=rule.ID, title=rule.NAME.replace("-", " "), files={}, findings=[])
    for relative in pending.files(rule):
        before = project.read(relative)
        fixed = fix(relative, before, project, [rule], unsafe=unsafe)
        step.skipped += fixed.skipped
        if fixed.data != before:
            (project.root / relative).write_bytes(fixed.data)
            step.files[relative] = fixed.data
            step.findings += fixed.applied
            pending.look(relative, fixed.data)
    return step if step.files else None
