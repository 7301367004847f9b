"""A chat: turns through the debug graph, commands through the tools, one conversation kept for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.types import Command
from langsmith import tracing_context

from agents import debug, interrupts
from agents.debug import Desk, Graph, Talk
from agents.llm import loop
from agents.llm.budget import Stop
from agents.llm.messages import Message
from agents.standing import standing
from agents.toolkit.bench import Bench

Ask = Callable[[str], bool]


class Chat:
    """One session that is open.

    Args:
        graph: The debug graph with the session's checkpoints.
        desk: What its nodes work with.
        ask: Puts a question to the person; False where nobody is there.
    """

    def __init__(self, graph: Graph, desk: Desk, ask: Ask) -> None:
        self._graph = graph
        self.desk = desk
        self._ask = ask
        self._config: Any = {"configurable": {"thread_id": desk.bench.context.folder.id}, "recursion_limit": 1000}

    @property
    def bench(self) -> Bench:
        """Where the tools work."""
        return self.desk.bench

    def messages(self) -> list[Message]:
        """The conversation so far."""
        values = self._graph.get_state(self._config).values
        return Talk.model_validate(values).messages if values else []

    def is_unfinished(self) -> bool:
        """Whether a turn was begun and not ended, as by a killed process."""
        return bool(self._graph.get_state(self._config).next)

    def turn(self, said: str | None) -> Stop | None:
        """Say something and hear the answer; None goes on with the turn that was interrupted."""
        start: Any = None if said is None else {"said": said}
        try:
            self._invoke(start)
            while waiting := self._waiting():
                self._invoke(Command(resume=self._ask(_question(waiting))))
        except KeyboardInterrupt:
            self._close_turn()
            raise
        return Talk.model_validate(self._graph.get_state(self._config).values).stop

    def _invoke(self, start: Any) -> None:
        # A user's tracing settings for other programs must not send their code anywhere.
        with tracing_context(enabled=False):
            self._graph.invoke(start, self._config, context=self.desk, durability="sync")

    def _waiting(self) -> dict[str, Any] | None:
        waiting = self._graph.get_state(self._config).interrupts
        return dict(waiting[0].value) if waiting else None

    def _close_turn(self) -> None:
        """End the turn where it is: what was done stays, calls without an answer say so."""
        if interrupts.wants_end():
            return  # the process is to end: the turn goes on when the session is resumed
        messages = self.messages()
        left = [loop.refused(call, "interrupted by the user") for call in loop.unanswered(messages)]
        said = Message(role="assistant", content=f"Ended: interrupted. (shown: {standing(self.bench)})")
        self.keep([*debug.in_place(messages, left), said], stop=Stop.INTERRUPTED)

    def keep(self, messages: list[Message], stop: Stop | None = None) -> None:
        """Make this the conversation, with no turn open."""
        values = {"messages": messages, "pending": [], "stop": stop}
        self._graph.update_state(self._config, values, as_node="look_up")

    def note(self, typed: str, text: str, evidence: bool) -> None:
        """Write a command and what came of it into the conversation, where a model finds it."""
        messages = self.messages() or [loop.system_message()]
        body = text.replace("</data>", "</ data>")
        said = f"I typed {typed}, which gave:\n<data>\n{body}\n</data>"
        self.keep([*messages, Message(role="user", content=said, shown=f"{typed}\n\n{text}", evidence=evidence)])


def _question(waiting: dict[str, Any]) -> str:
    return f"{waiting['tool']} {waiting['arguments']}"
