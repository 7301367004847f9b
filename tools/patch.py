"""Applies rules to a tree, one rule after another, so that each can be its own commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from tools.engine import fix, reads
from tools.findings import Finding, Skipped
from tools.project import Project
from tools.rules import selected
from tools.rules.base import Rule
from tools.source import MAX_BYTES

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
        ValueError: if a code matches no rule.
    """
    rules = selected(select, ignore)
    for _ in range(MAX_ROUNDS):
        changed = False
        for rule in rules:
            step = _apply(rule, root, unsafe)
            if step is not None:
                changed = True
                yield step
        if not changed:
            return


def _apply(rule: Rule, root: Path, unsafe: bool) -> PatchStep | None:
    project = Project(root)
    step = PatchStep(rule=rule.ID, title=f"{rule.NAME.replace('-', ' ')}", files={}, findings=[])
    for relative in project.paths:
        if not reads(relative, [rule]):
            continue
        path = root / relative
        if path.stat().st_size > MAX_BYTES:
            continue
        before = path.read_bytes()
        fixed = fix(relative, before, project, [rule], unsafe=unsafe)
        step.skipped += fixed.skipped
        if fixed.data != before:
            path.write_bytes(fixed.data)
            step.files[relative] = fixed.data
            step.findings += fixed.applied
    return step if step.files else None
