"""Tool: the files of the tree."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolResult
from agents.toolkit.bench import Bench
from tools.project import Project

_MOST = 300


class Input(BaseModel):
    """Arguments."""

    pattern: str = Field(default="*", description="shell pattern over whole paths, such as 'src/*.py'")


def list_files(arguments: Input, bench: Bench) -> ToolResult:
    """List the text files of the repository that fit a pattern."""
    names = [name for name in Project(bench.root).paths if fnmatchcase(name, arguments.pattern)]
    more = f"\n... and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ToolResult(text="\n".join(names[:_MOST]) + more or "no such file", data={"files": names[:_MOST]})


TOOL = Tool("list_files", Input, list_files)
