"""Estimates the plain migration: as it launches its step, operator by operator, and as one program."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents.context import Context
from agents.tuning import program
from agents.tuning.state import TuneState
from agents.tuning.text import described
from tools.errors import Exit, UserError
from tools.transforms import every


def measure(state: TuneState, runtime: Runtime[Context]) -> dict[str, object]:
    """Estimate, and line up what is to be tried."""
    context = runtime.context
    if not state.entries:
        raise UserError("No entry command is known.", 'Give the program: --entry "python train.py"')
    command = state.entries[0].command
    with program.copied(state, context, command) as request:
        recording = program.recording(request)
        plain = program.estimated(request, context)
        context.progress.done("plain", described(plain))
        whole = program.estimated(request, context, "compiled")
        operators = plain
        if plain.outcome == "ok" and any(one.kind != "operator" for one in plain.programs):
            operators = program.estimated(request, context, "operators")
    if plain.outcome not in ("ok", "out-of-memory"):
        raise UserError(f"The step cannot be estimated: {plain.message}", "", Exit.FAILED)
    context.progress.done("one", f"program for the whole step, if all could be fused: {described(whole)}")
    only = state.options.only
    asked = [one for one in every() if not only or one.ID in only]
    return {
        "plain": plain,
        "whole": whole,
        "operators": operators,
        "best": plain,
        "command": command,
        "small": state.options.verify_entry or command,
        "queue": [one.ID for one in asked if one.CHANGES != "batch" or not state.options.keep_batch],
        "recording": recording,
        "migrated": state.tip,
    }
