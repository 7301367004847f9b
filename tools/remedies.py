"""Where in a repository a known cause sits, and what its rules would change there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from tools.choice import choose
from tools.engine import fix
from tools.findings import Finding, Grade
from tools.project import Project
from tools.scan import scan

MOST_PLACES = 20


class Remedy(BaseModel):
    """What rules find for a cause, and their changes as a patch."""

    places: list[str] = Field(default=[], description="file:line, rule and message of each finding")
    patch: str = Field(default="", description="unified diff of the fixes of grade safe; nothing was written")
    unsafe: list[str] = Field(default=[], description="rules whose fixes wait for --unsafe-fixes")


def preview(root: Path, rules: Sequence[str]) -> Remedy:
    """Look for the findings of some rules and make their fixes in memory.

    Args:
        root: The repository.
        rules: Their ids.
    """
    if not rules or not root.is_dir():
        return Remedy()
    found = scan(root, select=rules).findings
    fixable = [finding for finding in found if finding.fixable]
    return Remedy(
        places=[_place(finding) for finding in found[:MOST_PLACES]],
        patch=_patch(root, rules, sorted({f.path for f in fixable if f.grade is Grade.SAFE})),
        unsafe=sorted({f.rule for f in fixable if f.grade is Grade.UNSAFE}),
    )


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line} {finding.rule} {finding.message}"


def _patch(root: Path, rules: Sequence[str], paths: Sequence[str]) -> str:
    settings, chosen = choose(root, rules, ())
    project, parts = Project(root, settings), list[str]()
    for path in paths:
        before = project.read(path)
        after = fix(path, before, project, chosen).data
        parts += difflib.unified_diff(
            before.decode("utf-8", "replace").splitlines(keepends=True),
            after.decode("utf-8", "replace").splitlines(keepends=True),
            f"a/{path}",
            f"b/{path}",
        )
    return "".join(parts)
