"""The migrate graph: takes a CUDA repository in and ends with a branch and a report of what holds.

```
intake -> assess -> plan -> patch -> run -> verify -> profile -> report
                      ^               |
                      +-- diagnose <--+   (bounded rounds; the last one goes on to verify)
```

Where the user named a language model, it gets what is left after verify: verify -> assist -> run -> verify -> settle,
which keeps its change or drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from langsmith import tracing_context

from agents.checkpoints import saver
from agents.context import Context
from agents.nodes.assess import assess
from agents.nodes.assist import assist, settle
from agents.nodes.diagnose import diagnose, goes_on
from agents.nodes.intake import intake
from agents.nodes.patch import patch
from agents.nodes.plan import plan
from agents.nodes.profile import profile
from agents.nodes.report import report
from agents.nodes.run import run
from agents.nodes.verify import verify
from agents.state import MODELS, Plan, State
from agents.timing import timed

Graph = CompiledStateGraph[State, Context, State, State]


def build(context_of: Callable[[State], Context] | None = None) -> StateGraph[State, Context, State, State]:
    """The graph, not yet bound to a checkpointer.

    Args:
        context_of: Makes what the nodes work with, where the caller of the graph cannot bring it.
    """
    graph = StateGraph(State, context_schema=Context)
    for node in (intake, assess, plan, patch, run, diagnose, verify, assist, settle, profile, report):
        graph.add_node(node.__name__, timed(node.__name__, node, context_of))
    for before, after in ((START, "intake"), ("intake", "assess"), ("assess", "plan"), ("plan", "patch"),
                          ("patch", "run"), ("settle", "profile"), ("profile", "report"), ("report", END)):  # fmt: skip
        graph.add_edge(before, after)
    graph.add_conditional_edges("run", _after_run, ["diagnose", "verify"])
    graph.add_conditional_edges("diagnose", _after_diagnose, ["plan", "verify"])
    graph.add_conditional_edges("verify", _after_verify, ["assist", "settle", "profile"])
    graph.add_conditional_edges("assist", _after_assist, ["run", "profile"])
    return graph


def _after_run(state: State) -> str:
    return "verify" if all(record.ended_well for record in state.latest) else "diagnose"


def _after_diagnose(state: State) -> str:
    return "plan" if goes_on(state) else "verify"


def _after_verify(state: State) -> str:
    if state.assistance is not None:
        return "settle"
    asked = (state.request.model or state.request.replay) and not state.request.dry_run
    return "assist" if asked else "profile"


def _after_assist(state: State) -> str:
    made = state.assistance
    return "run" if made is not None and made.commits and not made.dropped else "profile"


@contextmanager
def opened(context: Context) -> Iterator[Graph]:
    """The graph with the run's own checkpoints."""
    with saver(context, MODELS) as checkpoints:
        yield build().compile(checkpointer=checkpoints)


def migrate(context: Context, answer: bool | None = None) -> tuple[State, Plan | None]:
    """Start the run of `context`, or go on with it where it stopped.

    Args:
        context: The run's folder and collaborators.
        answer: Approval of the plan, when the run waits for one.

    Returns:
        The state, and the plan that waits for approval if one does.
    """
    folder = context.folder
    config: Any = {"configurable": {"thread_id": folder.id}}
    # A user's tracing settings for other programs must not send their code's findings anywhere.
    with opened(context) as graph, tracing_context(enabled=False):
        before = graph.get_state(config)
        start: Any = State(run_id=folder.id, request=folder.request)
        if before.interrupts:
            start = None if answer is None else Command(resume=answer)
        elif before.created_at is not None:
            start = None
        graph.invoke(start, config, context=context, durability="sync")
        after = graph.get_state(config)
        waiting = Plan.model_validate(after.interrupts[0].value) if after.interrupts else None
        return State.model_validate(after.values), waiting
