"""Hands what rules left to a language model, where the user named one."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agents import assist as helper
from agents.context import Context
from agents.stages.clean import clean
from agents.stages.common import headline
from agents.state import Assistance, State
from tools import git
from tools.wording import amount


def assist(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Let the model work; where it committed something, the program runs again, as attempt after this one."""
    context = runtime.context
    model = context.model
    assert model is not None
    text = helper.task(state, context)
    if text is None:
        return {"assistance": Assistance(model=model.name, stop="nothing was left", attempt=state.attempt)}
    context.progress.done("model", f"{model.name}: what rules left goes to {model.where}")
    # A run that was killed in the middle begins anew from where the rules ended.
    git.start_branch(context.folder.tree, state.branch, state.tip)
    made = helper.work(state, context, model.client, model.budget, model.name, model.context)
    trial = state.model_copy(update={"assistance": made})
    if made.commits and (refused := helper.cheats(trial, context)):
        made = made.model_copy(update={"dropped": True, "reason": f"refused: {'; '.join(refused)}"})
        _take_back(trial, context)
    made = made.model_copy(update={"before": state.verdicts})
    context.progress.done("model", describe(made))
    if made.dropped or not made.commits:
        return {"assistance": made}
    return {"assistance": made, "commits": [*state.commits, *made.commits], "attempt": state.attempt + 1}


def describe(made: Assistance) -> str:
    """One line for a person."""
    what = amount(len(made.commits), "commit") if made.commits else "no change"
    if made.dropped:
        return f"{what}, dropped: {made.reason}"
    return f"{what} ({made.stop}{f': {made.reason}' if made.reason else ''})"


def settle(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Keep the model's change where it passes, or drop it and take the runs and verdicts before it."""
    context, made = runtime.context, state.assistance
    if made is None or not made.commits or made.dropped:
        return {}
    reason = helper.reason_to_drop(made.before, state.verdicts)
    if not reason:
        context.progress.done("model", f"kept; highest stage reached: {headline(state.verdicts)}")
        return {"assistance": made.model_copy(update={"kept": True})}
    dropped = made.model_copy(update={"dropped": True, "reason": reason})
    context.progress.done("model", describe(dropped))
    _take_back(state, context)
    restored = {
        "assistance": dropped,
        "commits": state.commits[: len(state.commits) - len(made.commits)],
        "attempt": made.attempt,
        "verdicts": made.before,
    }
    clean(state.model_copy(update=restored), context)  # what is left is told of the tree as it is delivered
    return restored


def _take_back(state: State, context: Context) -> None:
    assert state.assistance is not None
    git.start_branch(context.folder.tree, state.branch, state.assistance.base)
