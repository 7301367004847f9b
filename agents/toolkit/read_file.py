"""Tool: part of a file."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolError, ToolResult, shortened
from agents.toolkit.bench import Bench, read_text


class Input(BaseModel):
    """Arguments."""

    path: str = Field(description="relative to the top of the repository")
    first_line: int = Field(default=1, ge=1)
    last_line: int = Field(default=400, ge=1)


def read_file(arguments: Input, bench: Bench) -> ToolResult:
    """Read lines of a file of the repository, with their numbers."""
    text = read_text(bench.path(arguments.path))
    if text is None:
        raise ToolError(f"There is no file {arguments.path}.")
    lines = text.splitlines()
    part = list(enumerate(lines, 1))[arguments.first_line - 1 : arguments.last_line]
    shown = "\n".join(f"{number:>5}  {line}" for number, line in part)
    rest = f"\n({len(lines)} lines in all)" if len(part) < len(lines) else ""
    return ToolResult(text=shortened(shown + rest), data={"path": arguments.path, "lines": len(lines)})


TOOL = Tool("read_file", Input, read_file)
