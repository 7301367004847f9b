"""A model that says what a script says: an OpenAI-compatible server on loopback, for tests and demonstrations.

Each request takes the next turn of the script. Besides honest answers it knows the ways in which real servers and
models fail: malformed arguments, refusals, answers cut off by length or in the middle of the stream, rate limits,
faults and plain nonsense. When the script is at its end, it says so.

`python -m evals.scripted_model script.json` serves a script until it is ended, and prints the address.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

CHUNK = 16


class Call(BaseModel):
    """A tool call; `raw` is sent in place of arguments where they are to be malformed."""

    model_config = ConfigDict(extra="forbid")

    name: str
    arguments: dict[str, Any] = {}
    raw: str | None = None


class Turn(BaseModel):
    """One answer.

    Attributes:
        say: Its text.
        calls: Tool calls behind the text.
        refuse: Text of a refusal, sent as such.
        finish: Overrides the reason of the end; `length` is an answer cut off by the model's limit.
        status: An HTTP error in place of an answer.
        retry_after: Header of that error, in seconds.
        cut: The connection is closed after so many characters of text or arguments, with no end of the stream.
        garbage: Bytes in place of the stream.
        usage: Whether tokens are told.
    """

    model_config = ConfigDict(extra="forbid")

    say: str = ""
    calls: list[Call] = []
    refuse: str = ""
    finish: Literal["stop", "tool_calls", "length", "content_filter"] | None = None
    status: int | None = None
    retry_after: float | None = None
    cut: int | None = None
    garbage: str | None = None
    usage: bool = True


SCRIPT = TypeAdapter(list[Turn])


class ScriptedModel:
    """The server; use it as a context manager.

    Args:
        script: The turns.

    Attributes:
        requests: Bodies of the requests that came, in order.
    """

    def __init__(self, script: Sequence[Turn]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._turns = iter(script)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def take(self, body: dict[str, Any]) -> Turn:
        """The next turn, for a request."""
        with self._lock:
            self.requests.append(body)
            return next(self._turns, Turn(say="(the script is at its end)"))

    def serve(self) -> None:
        """Answer until it is shut down."""
        self._server.serve_forever(poll_interval=0.05)

    def __enter__(self) -> ScriptedModel:
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"model": model})


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        if not self.path.endswith("/chat/completions"):
            self._json(404, {"error": {"message": f"no such path {self.path}", "type": "not_found"}})
            return
        turn = self.model.take(body)
        if turn.status is not None:
            self._error(turn)
        else:
            self._stream(turn, body)

    def _error(self, turn: Turn) -> None:
        message = turn.say or f"scripted error {turn.status}"
        headers = {} if turn.retry_after is None else {"retry-after": str(turn.retry_after)}
        self._json(turn.status or 500, {"error": {"message": message, "type": "scripted", "code": None}}, headers)

    def _json(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, turn: Turn, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        if turn.garbage is not None:
            self.wfile.write(turn.garbage.encode())
            return
        for data in events(turn, str(body.get("model", "scripted"))):
            self.wfile.write(b"data: " + data.encode() + b"\n\n")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


def events(turn: Turn, name: str) -> Iterator[str]:
    """The data of each event of a turn's stream; without an end where it is cut."""
    sent = 0
    for delta, weight in _deltas(turn):
        if turn.cut is not None and sent + weight > turn.cut:
            return
        sent += weight
        yield _chunk(name, delta, None)
    if turn.cut is not None:
        return
    finish = turn.finish or ("tool_calls" if turn.calls else "stop")
    yield _chunk(name, {}, finish)
    if turn.usage:
        usage = {"prompt_tokens": 100, "completion_tokens": max(sent // 4, 1), "total_tokens": 100 + max(sent // 4, 1)}
        yield json.dumps({**_frame(name), "choices": [], "usage": usage})
    yield "[DONE]"


def _deltas(turn: Turn) -> Iterator[tuple[dict[str, Any], int]]:
    yield {"role": "assistant", "content": ""}, 0
    for piece in _pieces(turn.say):
        yield {"content": piece}, len(piece)
    for piece in _pieces(turn.refuse):
        yield {"refusal": piece}, len(piece)
    for number, call in enumerate(turn.calls):
        text = call.raw if call.raw is not None else json.dumps(call.arguments)
        head = {"index": number, "id": f"call_{id(call):x}", "type": "function"}
        yield {"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]}, 0
        for piece in _pieces(text):
            yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}, len(piece)


def _pieces(text: str) -> Iterator[str]:
    yield from (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def _frame(name: str) -> dict[str, Any]:
    return {"id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": name}


def _chunk(name: str, delta: dict[str, Any], finish: str | None) -> str:
    return json.dumps({**_frame(name), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def main() -> None:
    """Serve the script named on the command line."""
    model = ScriptedModel(SCRIPT.validate_json(Path(sys.argv[1]).read_bytes()))
    print(model.base_url, flush=True)
    model.serve()


if __name__ == "__main__":
    main()
