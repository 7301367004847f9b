"""Tool: the stages, judged."""

from __future__ import annotations

from agents.nodes.verify import judge
from agents.runs import write_whole
from agents.stages.common import headline
from agents.state import Result
from agents.toolkit.base import Effect, NoInput, Tool, ToolError, ToolResult, shortened
from agents.toolkit.bench import Bench


def verify_program(_arguments: NoInput, bench: Bench) -> ToolResult:
    """Judge the private copy stage by stage, comparing with the original on the CPU. Takes minutes; run it first."""
    if not bench.state.latest:
        raise ToolError("Run the program first: the stages are judged by its last run.")
    if not bench.is_run_at_tip():
        raise ToolError("The copy was changed since the last run; run the program again first.")
    verdicts = judge(bench.state, bench.context)
    bench.update(verdicts=verdicts)
    write_whole(bench.context.folder.path / "verified-tip", bench.tip())
    lines = [f"{verdict.stage:<9} {verdict.result}: {verdict.reason}" for verdict in verdicts]
    lines.append(f"highest stage below which all passed: {headline(verdicts)}")
    data = {"headline": headline(verdicts), "stages": {v.stage: v.result.value for v in verdicts}}
    failed = any(verdict.result is Result.FAIL for verdict in verdicts)
    return ToolResult(text=shortened("\n".join(lines)), data=data, evidence=True, ok=not failed)


TOOL = Tool("verify_program", NoInput, verify_program, lambda _arguments: Effect.RUN)
