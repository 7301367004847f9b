"""Tool: memory and time of a step on a named TPU."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from agents.nodes.run import prepare
from agents.runs import home
from agents.toolkit.base import Effect, Tool, ToolResult, shortened
from agents.toolkit.bench import Bench
from agents.toolkit.run_program import entry_for
from tools.commands import parse
from tools.profile import ProfileRequest, profile, target_named
from tools.profiles.text import text as as_text


class Input(BaseModel):
    """Arguments."""

    target: str = Field(description="a TPU slice, such as v6e-8")
    command: str = Field(default="", description="empty for the usual one")


def profile_program(arguments: Input, bench: Bench) -> ToolResult:
    """Estimate whether a training step fits a TPU that need not be there, how long it takes and what limits it.

    The compiler for that TPU is asked; nothing is measured. Takes minutes.
    """
    target_named(arguments.target)
    entry = entry_for(arguments.command, bench)
    prepare(bench.state, bench.context)
    state = home() / "profiles"
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    request, settings = bench.state.request, bench.state.settings
    output = profile(
        ProfileRequest(
            command=parse(entry.command), cwd=bench.context.folder.work / bench.state.origin.scope,
            original=bench.root, target=arguments.target, python=Path(request.python) if request.python else None,
            timeout=settings.timeout, memory=settings.memory, sandbox=request.sandbox, quick=True, state=state,
        ),
        lambda said: bench.context.progress.working("profile", said),
    )  # fmt: skip
    data = {"outcome": output.outcome, "target": output.target}
    return ToolResult(text=shortened(as_text(output.profile)), data=data, evidence=True, ok=output.outcome == "ok")


TOOL = Tool("profile_program", Input, profile_program, lambda _arguments: Effect.RUN)
