"""Tool: take the newest commit back."""

from __future__ import annotations

from agents.toolkit.base import Effect, NoInput, Tool, ToolError, ToolResult
from agents.toolkit.bench import Bench


def undo(_arguments: NoInput, bench: Bench) -> ToolResult:
    """Take the newest commit of the private copy back."""
    title = bench.undo()
    if title is None:
        raise ToolError("There is nothing to undo: the copy is as it was found.")
    return ToolResult(text=f"taken back: {title}", data={"title": title})


TOOL = Tool("undo", NoInput, undo, lambda _arguments: Effect.SAFE_EDIT)
