"""Tool: causes of a failure."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.evidence import Evidence, from_text
from agents.knowledge_store import refuted
from agents.state import RunRecord
from agents.toolkit.base import Tool, ToolError, ToolResult, shortened
from agents.toolkit.bench import Bench
from tools.explain import explain, render
from tools.run import RunOutput


class Input(BaseModel):
    """Arguments."""

    text: str = Field(default="", description="an error or a log; empty for the last run of the program")


def diagnose(arguments: Input, bench: Bench) -> ToolResult:
    """Name the known causes of a failure with their evidence, remedy, and places in the repository."""
    if arguments.text.strip():
        gathered = from_text(arguments.text, "the text")
    elif bench.last_run is not None:
        gathered = Evidence("the last run", seen(bench.last_run))
    else:
        raise ToolError("Nothing was run yet; give the text of the error, or run the program.")
    explanation = explain(gathered.run, gathered.origin, bench.root, refuted())
    return ToolResult(
        text=shortened(render(explanation)), data=explanation.model_dump(mode="json"), evidence=True,
        ok=bool(explanation.causes) or explanation.ended_well,
    )  # fmt: skip


def seen(record: RunRecord) -> RunOutput:
    """A run as it was kept in full."""
    from pathlib import Path

    return RunOutput.model_validate_json(Path(record.result or "").read_bytes())


TOOL = Tool("diagnose", Input, diagnose)
