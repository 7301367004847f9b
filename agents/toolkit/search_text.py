"""Tool: lines that fit a regular expression."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolResult
from agents.toolkit.bench import Bench
from tools.errors import UserError
from tools.project import Project

_MOST = 80
_LONGEST = 400


class Input(BaseModel):
    """Arguments."""

    words: str = Field(min_length=1, max_length=200, description="text to look for, letter case ignored")
    pattern: str = Field(default="*", description="shell pattern over paths")


def search_text(arguments: Input, bench: Bench) -> ToolResult:
    """Find the lines of the repository that contain a text."""
    # Plain text, not a regular expression: one from a model could take for ever.
    wanted = re.compile(re.escape(arguments.words), re.IGNORECASE)
    found: list[str] = []
    for name in Project(bench.root).paths:
        if not fnmatchcase(name, arguments.pattern):
            continue
        try:
            lines = bench.path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, UserError):
            continue
        found += [f"{name}:{n}: {line.strip()[:_LONGEST]}" for n, line in enumerate(lines, 1) if wanted.search(line)]
    more = f"\n... and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ToolResult(text="\n".join(found[:_MOST]) + more or "no line has it", data={"lines": found[:_MOST]})


TOOL = Tool("search_text", Input, search_text)
