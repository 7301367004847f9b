"""Tool: what was changed."""

from __future__ import annotations

from agents.toolkit.base import NoInput, Tool, ToolResult, shortened
from agents.toolkit.bench import Bench


def show_diff(_arguments: NoInput, bench: Bench) -> ToolResult:
    """Show everything that was changed in the private copy since the beginning, as a patch."""
    patch = bench.diff()
    return ToolResult(text=shortened(patch) or "Nothing was changed.", data={"commits": len(bench.state.commits)})


TOOL = Tool("show_diff", NoInput, show_diff)
