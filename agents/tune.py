"""The tune graph: migrates where that is needed, then tries what may make a step faster or smaller.

```
intake -> assess -> patch -> measure -> trial -> ... -> trial -> report
```

Each trial is one checkpoint: a run that was killed goes on with the trial it was at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langsmith import tracing_context

from agents.checkpoints import saver
from agents.context import Context
from agents.nodes.assess import assess
from agents.nodes.intake import intake
from agents.nodes.patch import patch
from agents.timing import timed
from agents.tuning.measure import measure
from agents.tuning.report import report
from agents.tuning.state import MODELS, TuneState
from agents.tuning.trial import trial

Graph = CompiledStateGraph[TuneState, Context, TuneState, TuneState]


def build() -> StateGraph[TuneState, Context, TuneState, TuneState]:
    """The graph, not yet bound to a checkpointer."""
    graph = StateGraph(TuneState, context_schema=Context)
    for node in (intake, assess, patch, measure, trial, limit, report):
        graph.add_node(node.__name__, timed(node.__name__, node))
    for before, after in ((START, "intake"), ("intake", "assess"), ("assess", "patch"), ("patch", "measure"),
                          ("measure", "limit"), ("trial", "limit"), ("report", END)):  # fmt: skip
        graph.add_edge(before, after)
    graph.add_conditional_edges("limit", _next, ["trial", "report"])
    return graph


def limit(state: TuneState, _: Runtime[Context]) -> dict[str, object]:
    """Stop where the budget is used up."""
    options, tried = state.options, sum(one.verdict in ("kept", "dropped") for one in state.trials)
    if not state.queue:
        return {}
    if options.budget is not None and state.spent > options.budget:
        return {"stopped": f"the budget of {options.budget:.0f} s was used up before {', '.join(state.queue)}"}
    if options.max_trials is not None and tried >= options.max_trials:
        return {"stopped": f"{tried} trials were asked for; left: {', '.join(state.queue)}"}
    return {}


def _next(state: TuneState) -> str:
    return "trial" if state.queue and not state.stopped else "report"


@contextmanager
def opened(context: Context) -> Iterator[Graph]:
    """The graph with the run's own checkpoints."""
    with saver(context, MODELS) as checkpoints:
        yield build().compile(checkpointer=checkpoints)


def tune(context: Context) -> TuneState:
    """Start the run of `context`, or go on with it where it stopped."""
    folder = context.folder
    # A step for every trial, of which there may be many.
    config: Any = {"configurable": {"thread_id": folder.id}, "recursion_limit": 1000}
    with opened(context) as graph, tracing_context(enabled=False):
        known = graph.get_state(config).created_at is not None
        start: Any = None if known else TuneState(run_id=folder.id, request=folder.request)
        graph.invoke(start, config, context=context, durability="sync")
        return TuneState.model_validate(graph.get_state(config).values)
