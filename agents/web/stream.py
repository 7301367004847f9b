"""Server-Sent Events: what a run or a chat says, to a page that may come late, go and come back."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

BETWEEN = 0.4
"""Seconds between two looks at a file."""
_ALIVE = 15.0
"""Seconds of silence after which a comment shows that the server is there."""


def event(kind: str, data: Any, number: int | None = None) -> str:
    """One event on the wire."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n"


def last_seen(request: Request) -> int:
    """The number of the last event that the page has, 0 where it has none."""
    told = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    return int(told) if told.isdecimal() and len(told) < 12 else 0


def streaming(request: Request, events: AsyncIterator[str]) -> StreamingResponse:
    """The answer that carries events until they end, the page goes, or the server does."""
    closing: threading.Event = request.app.state.closing
    return StreamingResponse(
        _until(events, closing), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _until(events: AsyncIterator[str], closing: threading.Event) -> AsyncIterator[str]:
    yield "retry: 1500\n\n"
    silent = 0.0
    async for text in events:
        if closing.is_set():
            return
        silent = 0.0 if text else silent + BETWEEN
        if silent >= _ALIVE:
            text, silent = ": alive\n\n", 0.0
        if text:
            yield text
