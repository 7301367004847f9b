"""Decides, rule by rule, what is fixed and what is left to a person; asks first when told to."""

from __future__ import annotations

from itertools import groupby

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agents.context import Context
from agents.state import Plan, PlanItem, State
from tools.errors import Exit, UserError
from tools.findings import Finding, Grade, ScanResult


def plan(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Make the plan; with --approve the graph pauses here until it is accepted."""
    context = runtime.context
    result = ScanResult.model_validate_json(context.folder.findings.read_bytes())
    made = make_plan(result.findings, state.request.unsafe_fixes, [entry.command for entry in state.entries])
    asks = state.request.approve and not context.assume_yes and not (state.plan and state.plan.approved)
    if asks and not interrupt(made.model_dump(mode="json")):
        raise UserError("The plan was not approved; nothing was changed.", exit_code=Exit.INTERRUPTED)
    return {"plan": made}


def make_plan(findings: list[Finding], unsafe_fixes: bool, entries: list[str]) -> Plan:
    """What to do about each rule's findings."""
    ordered = sorted(findings, key=lambda f: (f.rule, f.fixable, f.grade))
    items = []
    for (rule, fixable, grade), group in groupby(ordered, key=lambda f: (f.rule, f.fixable, f.grade)):
        members = list(group)
        why = reason_to_leave(grade, fixable, unsafe_fixes)
        items.append(
            PlanItem(
                rule=rule,
                grade=grade.value,
                findings=len(members),
                files=len({f.path for f in members}),
                action="leave" if why else "fix",
                why=why,
            )
        )
    return Plan(items=items, entries=entries)


def reason_to_leave(grade: Grade, fixable: bool, unsafe_fixes: bool) -> str:
    """Why a finding is left to a person; empty when it is fixed."""
    if grade is Grade.ADVICE:
        return "advice, for you to judge"
    if not fixable:
        return "no rule can decide this; it needs a person"
    if grade is Grade.UNSAFE and not unsafe_fixes:
        return "its fix may change behaviour; apply it with --unsafe-fixes"
    return ""
