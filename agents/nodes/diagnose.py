"""Turns runs that failed into causes, and decides whether another round can remove the failure."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.diagnosis import explain
from agents.state import Diagnosis, State

MOST_ATTEMPTS = 3
_ENTRY_AT_FAULT = {"usage", "missing-data"}


def diagnose(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Explain each failed run; where a discovered entry was at fault, take the next one."""
    context = runtime.context
    known = {diagnosis.signature for diagnosis in state.diagnoses}
    found = [explain(record, context.root(state)) for record in state.latest if not record.ended_well]
    updates: dict[str, object] = {"diagnoses": [*state.diagnoses, *found]}
    for diagnosis in found:
        context.progress.done("diagnose", f"{diagnosis.cause}\n{diagnosis.remedy}".strip())
    if _can_go_on(state, found, known):
        entry, *rest = state.alternatives
        context.progress.done("entry", f"{entry.command}  ({entry.origin}; {entry.why})")
        updates |= {"entries": [entry], "alternatives": rest, "attempt": state.attempt + 1}
    return updates


def _can_go_on(state: State, found: list[Diagnosis], known: set[str]) -> bool:
    """Another round needs something new to try, and must not meet a failure it has met before."""
    if state.attempt >= MOST_ATTEMPTS or not state.alternatives:
        return False
    return all(d.kind in _ENTRY_AT_FAULT and d.signature not in known for d in found)


def goes_on(state: State) -> bool:
    """Whether diagnose started another round: an attempt that has not run yet."""
    return not state.latest
