"""Asks a model over the chat-completions protocol: streaming, retries with backoff, typed failures."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agents.llm.messages import Message, Reply, ToolCall, Usage
from agents.llm.redact import redact
from agents.llm.settings import ModelSettings
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from openai import OpenAI

_LONGEST_PAUSE = 60.0
_MOST_CALLS = 16
"""Tool calls taken from one answer; a model that floods is cut short."""


class ModelUnreachable(UserError):
    """No usable answer came, however often it was asked."""


class Model(Protocol):
    """Something that answers messages."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], on_text: Callable[[str], None]
    ) -> Reply:
        """One answer; its text is handed on as it comes.

        Raises:
            ModelUnreachable: None came.
        """


class Client:
    """A model behind an OpenAI-compatible server.

    Args:
        settings: Which and where.
        pause: Waits that many seconds between tries.
        note: Told when it has to be asked again.
    """

    def __init__(
        self,
        settings: ModelSettings,
        pause: Callable[[float], None] = time.sleep,
        note: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.settings = settings
        self._pause = pause
        self._note = note
        self._openai: OpenAI | None = None

    def complete(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], on_text: Callable[[str], None]
    ) -> Reply:
        """See `Model`."""
        import openai

        problem = ""
        for attempt in range(1, self.settings.retries + 2):
            try:
                reply = self._once(messages, tools, on_text)
                return reply.model_copy(update={"attempts": attempt})
            except (openai.RateLimitError, openai.APIConnectionError, openai.InternalServerError, _Cut) as error:
                if isinstance(error, openai.RateLimitError) and error.code == "insufficient_quota":
                    raise self._lost("its quota is used up") from error
                problem = _said(error)
                if attempt <= self.settings.retries:
                    seconds = _pause_before(attempt, error)
                    self._note(f"{problem}; asking again in {seconds:.0f} s")
                    self._pause(seconds)
            except openai.APIStatusError as error:
                raise self._lost(_said(error)) from error
            except openai.APIError as error:
                problem = _said(error)
                self._note(problem)
        raise self._lost(f"{problem}, {self.settings.retries + 1} times")

    def _lost(self, problem: str) -> ModelUnreachable:
        message = f"The model {self.settings.model} at {self.settings.where} gave no answer: {problem}."
        return ModelUnreachable(redact(message), "See docs/models.md for the settings of servers.", Exit.ENVIRONMENT)

    def _once(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], on_text: Callable[[str], None]
    ) -> Reply:
        wire = [{**said, "content": redact(str(said["content"]))} for said in (message.wire() for message in messages)]
        create: Any = self._client().chat.completions.create
        options: dict[str, Any] = {"tools": list(tools)} if tools else {}
        stream = create(
            model=self.settings.model,
            messages=wire,
            stream=True,
            stream_options={"include_usage": True},
            **options,
        )
        return _gather(stream, on_text, sum(len(str(said)) for said in wire))

    def _client(self) -> OpenAI:
        if self._openai is None:
            from openai import OpenAI

            self._openai = OpenAI(
                api_key=self.settings.api_key.get_secret_value(),
                base_url=self.settings.base_url,
                timeout=self.settings.timeout,
                max_retries=0,  # tried again here, where waiting is told and can be interrupted
            )
        return self._openai


class _Cut(Exception):
    """The stream ended before the answer did."""


def _gather(stream: Iterable[Any], on_text: Callable[[str], None], asked: int) -> Reply:
    """Put the pieces of a stream together.

    Raises:
        _Cut: It ended without saying why.
    """
    import httpx

    parts = _Parts(on_text)
    try:
        for chunk in stream:
            parts.take(chunk)
    except (httpx.HTTPError, ValueError) as error:  # a closed connection, or half a JSON document
        raise _Cut(f"the answer broke off ({type(error).__name__})") from error
    if parts.finish is None:
        raise _Cut("the answer broke off before its end")
    return parts.reply(asked)


class _Parts:
    def __init__(self, on_text: Callable[[str], None]) -> None:
        self.finish: str | None = None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._usage: Usage | None = None
        self._on_text = on_text

    def take(self, chunk: Any) -> None:
        if chunk.usage is not None:
            self._usage = Usage(prompt=chunk.usage.prompt_tokens or 0, completion=chunk.usage.completion_tokens or 0)
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta
            if delta is None:
                continue
            if delta.content:
                self._text.append(delta.content)
                self._on_text(delta.content)
            if getattr(delta, "refusal", None):
                self._refusal.append(delta.refusal)
            for part in delta.tool_calls or []:
                self._take_call(part)

    def _take_call(self, part: Any) -> None:
        call = self._calls.setdefault(part.index or 0, {"id": "", "name": "", "arguments": ""})
        call["id"] = part.id or call["id"]
        if part.function is not None:
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""

    def reply(self, asked: int) -> Reply:
        text, refusal = "".join(self._text), "".join(self._refusal)
        calls = [
            ToolCall(id=call["id"] or f"call-{number}", name=call["name"], arguments=call["arguments"] or "{}")
            for number, call in sorted(self._calls.items())
        ][:_MOST_CALLS]
        said = len(text) + sum(len(call.arguments) for call in calls)
        usage = self._usage or Usage(prompt=asked // 4, completion=said // 4 + 1, estimated=True)
        if refusal or self.finish == "content_filter":
            message = Message(role="assistant", content=refusal or text)
            return Reply(message=message, finish="refusal", usage=usage)
        if self.finish == "length":
            # A call that was cut off has arguments nobody meant.
            return Reply(message=Message(role="assistant", content=text), finish="length", usage=usage)
        message = Message(role="assistant", content=text, tool_calls=calls)
        return Reply(message=message, finish="tools" if calls else "stop", usage=usage)


def _pause_before(attempt: int, error: Exception) -> float:
    """What the server asks for, else twice as long each time, with some chance so that clients do not march in step."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        wanted = float(headers.get("retry-after", ""))
    except ValueError:
        wanted = 2.0 ** (attempt - 1) * (1 + random.random() / 4)
    return min(max(wanted, 0.0), _LONGEST_PAUSE)


def _said(error: Exception) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    status = getattr(error, "status_code", None)
    text = " ".join(str(message or error).split())[:300].rstrip(".")
    return f"status {status}: {text}" if status else text
