"""Turns runs that failed into causes, and starts another round where one may remove the failure."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents import import_paths
from agents.context import Context
from agents.diagnosis import explain
from agents.state import Diagnosis, State

MOST_ATTEMPTS = 3
_ENTRY_AT_FAULT = {"usage", "missing-data"}


def diagnose(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Explain each failed run and, where something new can be tried, start another round."""
    context = runtime.context
    root = context.root(state)
    known = {diagnosis.signature for diagnosis in state.diagnoses}
    found = [explain(record, root) for record in state.latest if not record.ended_well]
    for diagnosis in found:
        context.progress.done("diagnose", f"{diagnosis.cause}\n{diagnosis.remedy}".strip())
    updates: dict[str, object] = {"diagnoses": [*state.diagnoses, *found]}
    # A failure that was met before was not removed by the last round: then it ends here.
    # After a model's work there is no other round: planning anew would take its commits away.
    if state.assistance is None and state.attempt < MOST_ATTEMPTS and not any(d.signature in known for d in found):
        tried = _import_path(state, found, context) or _next_entry(state, found, context)
        if tried:
            updates |= tried | {"attempt": state.attempt + 1}
    return updates


def _import_path(state: State, found: list[Diagnosis], context: Context) -> dict[str, object]:
    """Put the folder of the project's own module on the path, when that is all that was missing."""
    if not found or any(d.kind != "own-module" or d.module is None for d in found):
        return {}
    scripts = [name for entry in state.entries for name in entry.scripts]
    tree, scope = context.folder.tree, state.origin.scope
    places = {import_paths.holding(d.module or "", tree, scope, scripts) for d in found}
    new = sorted(place for place in places if place is not None and place not in state.import_paths)
    if not new:
        return {}
    context.progress.note(f"trying again with {', '.join(place or '.' for place in new)} on PYTHONPATH")
    return {"import_paths": [*new, *state.import_paths]}


def _next_entry(state: State, found: list[Diagnosis], context: Context) -> dict[str, object]:
    """Take the next discovered entry, when the one before could not be started as it was found."""
    if not state.alternatives or any(d.kind not in _ENTRY_AT_FAULT for d in found):
        return {}
    entry, *rest = state.alternatives
    context.progress.done("entry", f"{entry.command}  ({entry.origin}; {entry.why})")
    return {"entries": [entry], "alternatives": rest}


def goes_on(state: State) -> bool:
    """Whether diagnose started another round: an attempt that has not run yet."""
    return not state.latest
