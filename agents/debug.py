"""The debug graph: one turn of a chat, from what a person said to an answer, with a checkpoint after every step.

```
listen -> think -> act -> think ... -> END      with a model
listen -> look_up -> END                        without one
```
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel

from agents import interrupts
from agents.llm import loop
from agents.llm.budget import Budget, Spent, Stop
from agents.llm.client import Model
from agents.llm.loop import Leave
from agents.llm.messages import Message, Reply, ToolCall, Usage
from agents.llm.trajectory import Step, Trajectory
from agents.modes import Mode
from agents.standing import standing
from agents.toolkit.bench import Bench
from agents.without_model import look_up as known
from agents.without_model import shows_failure

NO_MODEL = (
    "no model configured: this is what diagnosis and search know. Name a model with --model to talk freely; see"
    " docs/models.md."
)


class Talk(BaseModel):
    """State of a chat.

    Attributes:
        said: What the person said last.
        pending: Calls of the model that wait to be made.
        spent: What this turn has cost.
        stop: Why the turn ended.
        by_model: Whether a model answers.
    """

    messages: list[Message] = []
    said: str = ""
    pending: list[ToolCall] = []
    spent: Spent = Spent()
    stop: Stop | None = None
    by_model: bool = False


MODELS: tuple[type, ...] = (Message, ToolCall, Spent, Stop, Reply, Usage)
"""Everything that may appear in a checkpoint."""


@dataclass
class Desk:
    """What the nodes work with.

    Attributes:
        on_text: Gets the model's text as it comes.
        on_call: Told before a call is made, with the tool's name and arguments.
        on_result: Told what came of it.
    """

    bench: Bench
    mode: Mode
    model: Model | None = None
    budget: Budget = field(default_factory=Budget)
    context: int = 120_000
    trajectory: Trajectory | None = None
    on_text: Callable[[str], None] = lambda _text: None
    on_call: Callable[[ToolCall], None] = lambda _call: None
    on_result: Callable[[str], None] = lambda _text: None

    def record(self, step: Step) -> None:
        """Write a step down where a model is at work."""
        if self.trajectory is not None:
            self.trajectory.add(step)


Graph = CompiledStateGraph[Talk, Desk, Talk, Talk]


def build(desk_of: Callable[[Talk], Desk] | None = None) -> StateGraph[Talk, Desk, Talk, Talk]:
    """The graph, not yet bound to a checkpointer.

    Args:
        desk_of: Makes what the nodes work with, where the caller of the graph cannot bring it.
    """
    graph = StateGraph(Talk, context_schema=Desk)
    for name, node in (("listen", listen), ("think", think), ("act", act), ("look_up", look_up)):
        graph.add_node(name, _interruptible(node, desk_of))
    graph.add_edge(START, "listen")
    graph.add_conditional_edges("listen", _after_listen, ["think", "look_up"])
    graph.add_conditional_edges("think", _next, ["think", "act", END])
    graph.add_conditional_edges("act", _next, ["act", "think", END])
    graph.add_edge("look_up", END)
    return graph


def _interruptible(
    node: Callable[[Talk, Runtime[Desk]], dict[str, object]], desk_of: Callable[[Talk], Desk] | None
) -> Any:
    def checked(state: Talk, runtime: Runtime[Desk]) -> dict[str, object]:
        interrupts.check()
        if desk_of is not None:
            runtime = runtime.override(context=desk_of(state))
        return node(state, runtime)

    return checked


def listen(state: Talk, runtime: Runtime[Desk]) -> dict[str, object]:
    """Take what was said; calls that an interruption left without an answer get one."""
    messages = state.messages or [loop.system_message()]
    left = [loop.refused(call, "interrupted by the user") for call in loop.unanswered(messages)]
    runtime.context.record(Step(kind="said", text=state.said))
    evidence = shows_failure(state.said)
    said = Message(role="user", content=state.said, evidence=evidence)
    by_model = runtime.context.model is not None
    spoken = [*in_place(messages, left), said]
    return {"messages": spoken, "pending": [], "spent": Spent(), "stop": None, "by_model": by_model}


def in_place(messages: list[Message], answers: list[Message]) -> list[Message]:
    """Each answer right behind the message that called for it, where the protocol wants it."""
    by_call = {answer.tool_call_id: answer for answer in answers}
    placed: list[Message] = []
    for message in messages:
        placed.append(message)
        placed += [by_call[call.id] for call in message.tool_calls if call.id in by_call]
    return placed


def _after_listen(state: Talk) -> str:
    return "think" if state.by_model else "look_up"


def look_up(state: Talk, runtime: Runtime[Desk]) -> dict[str, object]:
    """Answer from diagnosis and search, and say that no model did."""
    desk = runtime.context
    text = f"{known(state.said, desk.bench)}\n\n({NO_MODEL})"
    desk.on_text(text)
    return {"messages": [*state.messages, Message(role="assistant", content=text)], "stop": Stop.NO_MODEL}


def think(state: Talk, runtime: Runtime[Desk]) -> dict[str, object]:
    """Ask the model once; where it ends, say what was really shown."""
    desk = runtime.context
    assert desk.model is not None
    thought = loop.think(desk.model, state.messages, state.spent, desk.budget, desk.context, desk.on_text)
    if thought.reply is not None:
        desk.record(Step(kind="reply", reply=thought.reply))
    messages = [*state.messages, *thought.messages]
    updates = {"messages": messages, "pending": thought.calls, "spent": thought.spent}
    return updates if thought.stop is None else {**updates, **_end(thought.stop, messages, desk, thought.problem)}


def _end(stop: Stop, messages: list[Message], desk: Desk, problem: str = "") -> dict[str, object]:
    """End the turn with a word on why, and on what was really shown."""
    text = _closing(stop, problem, desk.bench)
    desk.on_text(f"\n\n{text}\n")
    desk.record(Step(kind="stop", text=f"{stop}: {problem}".rstrip(": ")))
    return {"messages": [*messages, Message(role="assistant", content=text)], "stop": stop}


def _closing(stop: Stop, problem: str, bench: Bench) -> str:
    shown = f"(shown: {standing(bench)})"
    if stop is Stop.ANSWERED:
        return shown
    remedy = "Say `go on` to let it work further." if stop.is_limit else "Nothing is lost; the session can go on."
    return " ".join(part for part in (f"Ended: {stop}.", problem, remedy, shown) if part)


def _next(state: Talk) -> str:
    if state.stop is not None:
        return END
    return "act" if state.pending else "think"


def act(state: Talk, runtime: Runtime[Desk]) -> dict[str, object]:
    """Make the first call that waits, if it may be made."""
    desk, (call, *rest) = runtime.context, state.pending
    may = loop.leave(loop.effect_of(call), desk.mode)
    if may is Leave.ASK and not interrupt({"tool": call.name, "arguments": call.arguments}):
        answer, spent = loop.refused(call, "the user said no"), state.spent
    elif may is Leave.NO:
        answer, spent = loop.refused(call, f"the session is {desk.mode}: nothing may be changed"), state.spent
    else:
        desk.on_call(call)
        result, spent = loop.act(call, desk.bench, state.spent)
        answer = loop.answer_of(call, result)
    desk.on_result(answer.content)
    desk.record(Step(kind="tool", tool=call.name, arguments=call.arguments, text=answer.content))
    messages = [*state.messages, answer]
    if spent.wrong_in_a_row >= loop.MOST_WRONG:
        messages += [loop.refused(each, "given up") for each in rest]
        return {**_end(Stop.NO_PROGRESS, messages, desk), "pending": [], "spent": spent}
    return {"messages": messages, "pending": rest, "spent": spent}


@contextmanager
def opened(desk: Desk) -> Iterator[Graph]:
    """The graph with the session's own checkpoints, which a killed process leaves whole."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=[(m.__module__, m.__name__) for m in MODELS])
    with closing(sqlite3.connect(desk.bench.context.folder.database, check_same_thread=False)) as connection:
        yield build().compile(checkpointer=SqliteSaver(connection, serde=serde))
