"""Tool: what the rules find."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolResult, shortened
from agents.toolkit.bench import Bench
from tools.findings import Grade
from tools.scan import scan as examine


class Input(BaseModel):
    """Arguments."""

    rules: list[str] = Field(default=[], description="rule ids or their beginnings; all if empty")


def scan(arguments: Input, bench: Bench) -> ToolResult:
    """Look for what in the repository needs a change before it runs on a TPU. Nothing is changed."""
    select = arguments.rules or bench.state.settings.select
    result = examine(bench.root, select=select, ignore=bench.state.settings.ignore)
    lines = [
        f"{f.path}:{f.line} {f.rule} ({f.grade}{', has a fix' if f.fixable and f.grade is not Grade.ADVICE else ''})"
        f" {f.message}" + (f" [{f.note}]" if f.note else "")
        for f in result.findings
    ]
    count = {grade.value: sum(f.grade is grade for f in result.findings) for grade in Grade}
    head = f"{len(lines)} findings in {result.files} files: " + ", ".join(f"{n} {g}" for g, n in count.items())
    return ToolResult(text=shortened("\n".join([head, *lines])), data={"findings": len(lines), **count})


TOOL = Tool("scan", Input, scan)
