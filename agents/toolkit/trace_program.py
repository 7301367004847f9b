"""Tool: what the program ran on the device."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.nodes.run import prepare, request_for
from agents.runs import write_whole
from agents.toolkit.base import Effect, Tool, ToolResult, shortened
from agents.toolkit.bench import Bench
from agents.toolkit.run_program import entry_for
from tools.trace import TraceOutput, sections, trace

TRACE = "trace.json"
"""Where a session keeps its newest trace."""
_ROWS = 8


class Input(BaseModel):
    """Arguments."""

    command: str = Field(default="", description="such as 'python train.py --steps 5'; empty for the usual one")


def trace_program(arguments: Input, bench: Bench) -> ToolResult:
    """Run the program and tell what ran where, what made the host wait, and what was compiled and why."""
    entry = entry_for(arguments.command, bench)
    prepare(bench.state, bench.context)
    bench.context.progress.working("trace", entry.command)
    output = trace(request_for(entry.command, "trace", bench.state, bench.context))
    write_whole(bench.context.folder.path / TRACE, output.model_dump_json())
    text = shortened("\n".join([f"{entry.command}: {output.explanation}", *_tables(output)]))
    data = {"outcome": output.outcome, "processes": len(output.processes), "fallbacks": len(output.fallbacks)}
    return ToolResult(text=text, data=data, evidence=True, ok=output.ended_well)


def _tables(output: TraceOutput) -> list[str]:
    if not output.processes:
        return ["nothing was seen: no process imported torch, or it died before its first operator"]
    lines: list[str] = []
    for title, heads, rows in sections(output.processes[0], output.fallbacks, _ROWS):
        if rows:
            lines += ["", title, "  " + " | ".join(heads), *("  " + " | ".join(row) for row in rows)]
    return lines


TOOL = Tool("trace_program", Input, trace_program, lambda _arguments: Effect.RUN)
