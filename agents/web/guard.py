"""Stands before every request: host, size, sign-in, forged forms; and gives every answer its headers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from agents.web.settings import ServeSettings
from agents.web.visitors import COOKIE, LIFETIME, Visitor, Visitors

Scope = MutableMapping[str, Any]
Received = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Received]]
Send = Callable[[Received], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 20
"""Bytes of a request's body; a pasted log of half a million characters fits."""
OUTSIDE = ("/github/",)
"""Paths with a guard of their own: what comes there is signed, and has no cookie."""
_OPEN = ("/static/", "/sign-in", "/healthz", "/readyz")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Refused(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, text: str, where: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.where = where


class Guard:
    """ASGI middleware around the whole application.

    Args:
        app: What is guarded.
        settings: Who may come in.
        visitors: Reads cookies.
    """

    def __init__(self, app: App, settings: ServeSettings, visitors: Visitors) -> None:
        self._app = app
        self._settings = settings
        self._visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with what is wrong about it."""
        if scope["type"] != "http" or scope["path"].startswith(OUTSIDE):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        cookie: list[str] = []
        try:
            body = await self._admit(scope, headers, receive, cookie)
        except Refused as refusal:
            await _refuse(refusal, scope, send)
            return
        await self._app(scope, _again(body, receive), _dressed(send, cookie))

    async def _admit(self, scope: Scope, headers: dict[str, str], receive: Receive, cookie: list[str]) -> bytes:
        self._check_host(headers)
        body = await _body(headers, receive)
        visitor, by_token = self._visitor(headers)
        if visitor is None:
            visitor = self._visitors.new(signed_in=False)
            cookie.append(set_cookie(self._visitors, visitor, scope))
        scope.setdefault("state", {}).update(visitor=visitor, csrf=self._visitors.csrf(visitor))
        if scope["method"] not in _SAFE and not by_token:
            self._check_form(headers, visitor, body)
        if self._settings.wants_sign_in and not (by_token or visitor.signed_in):
            self._check_open(scope)
        return body

    def _check_host(self, headers: dict[str, str]) -> None:
        """A name that was made to resolve to this machine must not reach a server that asks nobody for a token."""
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if not self._settings.wants_sign_in and name not in _LOOPBACK:
            raise Refused(421, "This server answers only under the names 127.0.0.1 and localhost.")

    def _visitor(self, headers: dict[str, str]) -> tuple[Visitor | None, bool]:
        """Who asks, and whether the token itself came with the request."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._settings.wants_sign_in:
            if not self._visitors.may_try():
                raise Refused(429, "Too many wrong tokens. Wait a minute.")
            if self._visitors.is_token(token.strip()):
                return self._visitors.new(signed_in=True), True
            self._visitors.failed()
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            found = None
        return (self._visitors.read(found.value) if found else None), False

    def _check_form(self, headers: dict[str, str], visitor: Visitor, body: bytes) -> None:
        """A change has to come from a page of ours."""
        origin, host = headers.get("origin"), headers.get("host", "")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Refused(403, "The request comes from another site.")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "The request comes from another site.")
        word = headers.get("x-csrf-token", "")
        if not word and headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            word = parse_qs(body.decode("utf-8", "replace")).get("csrf", [""])[0]
        if not self._visitors.is_csrf(visitor, word):
            raise Refused(403, "The form is too old, or not from this server. Load the page again.")

    def _check_open(self, scope: Scope) -> None:
        path = scope["path"]
        if path.startswith(_OPEN):
            return
        if scope["method"] == "GET" and not path.startswith(("/api/", "/metrics")):
            raise Refused(303, "Sign in first.", f"/sign-in?next={quote(path)}")
        raise Refused(401, "Sign in first, or send the token: Authorization: Bearer <token>")


def set_cookie(visitors: Visitors, visitor: Visitor, scope: Scope) -> str:
    """The Set-Cookie header of a visitor."""
    secure = "; Secure" if scope.get("scheme") == "https" else ""
    return f"{COOKIE}={visitors.cookie(visitor)}; Max-Age={LIFETIME}; Path=/; HttpOnly; SameSite=Strict{secure}"


async def _body(headers: dict[str, str], receive: Receive) -> bytes:
    """The whole body, as long as it is not too long."""
    told = headers.get("content-length", "0")
    if not told.isdigit() or int(told) > MOST_BYTES:
        raise Refused(413, f"A request may have {MOST_BYTES} bytes.")
    parts, length = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "The request ended early.")
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > MOST_BYTES:
            raise Refused(413, f"A request may have {MOST_BYTES} bytes.")
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once more, for who is behind the guard."""
    given = False

    async def replay() -> Received:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _dressed(send: Send, cookie: list[str]) -> Send:
    """Adds the headers that every answer has; one that the application set itself stays."""

    async def sending(message: Received) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            known = {name.lower() for name, _ in headers}
            headers += [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in known]
            if b"set-cookie" not in known:
                headers += [(b"set-cookie", value.encode()) for value in cookie]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _refuse(refusal: Refused, scope: Scope, send: Send) -> None:
    as_json = scope["path"].startswith("/api/")
    text = json.dumps({"error": refusal.text, "remedy": ""}) if as_json else f"{refusal.text}\n"
    kind = "application/json" if as_json else "text/plain; charset=utf-8"
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(text.encode())).encode())]
    if refusal.where:
        headers.append((b"location", refusal.where.encode()))
    start = {"type": "http.response.start", "status": refusal.status, "headers": headers}
    await _dressed(send, [])(start)
    await send({"type": "http.response.body", "body": text.encode()})
