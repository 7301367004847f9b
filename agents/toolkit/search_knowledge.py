"""Tool: what is known of failures, by words."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolResult
from agents.toolkit.bench import Bench
from tools.search import search


class Input(BaseModel):
    """Arguments."""

    words: str = Field(min_length=1, max_length=2000, description="plain words or an error message")
    limit: int = Field(default=5, ge=1, le=20)


def search_knowledge(arguments: Input, _bench: Bench) -> ToolResult:
    """Find known failures of CUDA programs on TPUs, and rules, by plain words: cause and remedy of each."""
    found = search(arguments.words, arguments.limit)
    parts = [
        f"{hit.id}: {hit.title}\n  {hit.cause[:600]}\n  remedy: {hit.remedy or 'see the rule'}" for hit in found.hits
    ]
    return ToolResult(text="\n".join(parts) or "nothing has these words", data=found.model_dump(mode="json"))


TOOL = Tool("search_knowledge", Input, search_knowledge)
