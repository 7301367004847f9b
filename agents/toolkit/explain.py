"""Tool: a rule or a knowledge entry in full."""

from __future__ import annotations

import inspect

from pydantic import BaseModel, Field

from agents.toolkit.base import Tool, ToolError, ToolResult
from agents.toolkit.bench import Bench
from tools.knowledge import entries
from tools.rules import all_rules
from tools.search import search


class Input(BaseModel):
    """Arguments."""

    id: str = Field(description="of a rule, such as TPU104, or of a knowledge entry, such as scaler-on-tpu")


def explain(arguments: Input, _bench: Bench) -> ToolResult:
    """Explain one rule with its example, or one knowledge entry with cause, remedy and sources."""
    wanted = arguments.id.strip()
    for rule in all_rules():
        if wanted.upper() in (rule.ID, rule.NAME.upper()):
            lines = [
                f"{rule.ID} {rule.NAME} ({rule.GRADE.value})",
                rule.MESSAGE,
                inspect.cleandoc(type(rule).__doc__ or ""),
            ]
            for case in rule.INVALID[:1]:
                lines += ["", "before:", case.text, *(["after:", case.fixed] if case.fixed is not None else [])]
            return ToolResult(text="\n".join(lines), data={"kind": "rule", "id": rule.ID})
    for entry in entries():
        if entry.id == wanted:
            lines = [f"{entry.id}: {entry.title} ({entry.owner})", f"cause   {entry.cause}", f"remedy  {entry.remedy}"]
            lines += [f"rules   {', '.join(entry.rules)}"] if entry.rules else []
            return ToolResult(text="\n".join([*lines, *entry.sources]), data={"kind": "entry", "id": entry.id})
    near = ", ".join(hit.id for hit in search(wanted, 3).hits)
    raise ToolError(f"There is no rule or entry {wanted}." + (f" Near: {near}." if near else ""))


TOOL = Tool("explain", Input, explain)
