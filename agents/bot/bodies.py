"""Reads the body of a delivery: so large and so deep, and no further."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

MOST_BYTES = 25 * 2**20
"""GitHub itself sends no delivery above 25 MB."""
MOST_DEPTH = 64


class BadBody(Exception):
    """A body that is not taken; `status` is the answer's."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


async def read(stream: AsyncIterator[bytes], announced: str | None, most: int = MOST_BYTES) -> bytes:
    """A request's body.

    Raises:
        BadBody: It is too long, whatever its header says.
    """
    if announced is not None and (not announced.isdecimal() or len(announced) > 12 or int(announced) > most):
        raise BadBody(413, f"A body has at most {most} bytes.")
    parts: list[bytes] = []
    size = 0
    async for part in stream:
        size += len(part)
        if size > most:
            raise BadBody(413, f"A body has at most {most} bytes.")
        parts.append(part)
    return b"".join(parts)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body.

    Raises:
        BadBody: It is none, or nested so deep that reading it would exhaust the stack.
    """
    if _is_deep(body):
        raise BadBody(400, f"The body is nested deeper than {MOST_DEPTH}.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(400, "The body is no JSON.") from error
    if not isinstance(value, dict):
        raise BadBody(400, "The body is no JSON object.")
    return value


def _is_deep(body: bytes) -> bool:
    """Whether brackets are nested too deep outside of texts; counted without recursion."""
    depth = 0
    for byte in _TEXT.sub(b"", body).translate(None, _OTHERS):
        depth += 1 if byte in b"{[" else -1
        if depth > MOST_DEPTH:
            return True
    return False


_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OTHERS = bytes(byte for byte in range(256) if byte not in b"{}[]")
