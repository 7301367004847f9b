"""Tool: the fixes of rules, one commit a rule."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.nodes.patch import commit_message
from agents.toolkit.base import Effect, Tool, ToolResult
from agents.toolkit.bench import Bench
from tools.patch import patch_steps
from tools.wording import amount


class Input(BaseModel):
    """Arguments."""

    rules: list[str] = Field(default=[], description="rule ids or their beginnings; all if empty")
    unsafe: bool = Field(default=False, description="also apply fixes that may change behaviour")


def apply_rules(arguments: Input, bench: Bench) -> ToolResult:
    """Apply the fixes of the rules to the private copy, one commit a rule. Try this before editing by hand."""
    settings, scope = bench.state.settings, bench.state.origin.scope
    prefix = f"{scope}/" if scope else ""
    made: list[str] = []
    select = arguments.rules or settings.select
    for step in patch_steps(bench.root, unsafe=arguments.unsafe, select=select, ignore=settings.ignore):
        bench.context.progress.working("patch", f"{step.rule} {step.title}")
        _, _, body = commit_message(step, prefix).partition("\n\n")
        title = f"{step.rule}: {step.title}"
        files = sorted(f"{prefix}{name}" for name in step.files)
        bench.record(files, title, body.partition("\n\nMade by")[0], step.rule, len(step.findings))
        made.append(f"{title} ({amount(len(step.findings), 'place')} in {', '.join(files)})")
    if not made:
        return ToolResult(text="The rules change nothing here.", data={"commits": 0})
    return ToolResult(text="\n".join([f"{amount(len(made), 'commit')}:", *made]), data={"commits": len(made)})


TOOL = Tool("apply_rules", Input, apply_rules, lambda a: Effect.EDIT if a.unsafe else Effect.SAFE_EDIT)
