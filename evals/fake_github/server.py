"""Serves the fake GitHub over HTTP/1.1: REST, smart-HTTP git, ETags, pages, limits and faults."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import jwt

from evals.fake_github.routes import ROUTES, Asked, Refusal, installation_token, may
from evals.fake_github.state import Fault, Repository, State


class FakeGitHub(ThreadingHTTPServer):
    """The server; its REST interface is at its root, as that of an own host is below `/api/v3`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, state: State, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.state = state

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers that go away are what this server is for."""


@contextmanager
def serving(state: State, port: int = 0) -> Iterator[FakeGitHub]:
    """A server in a thread."""
    server = FakeGitHub(state, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeGitHub

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path).removeprefix("/api/v3")
        raw = self._body()
        if ".git/" in path:
            _Git(self, path, parts.query, raw).serve()
            return
        state = self.server.state
        fault = state.fault_for(self.command, path)
        if fault and not fault.after:
            self._fail(fault, path, None)
            return
        try:
            body = json.loads(raw) if raw else {}
            status, answer = self._answer(path, dict(parse_qsl(parts.query)), body)
        except Refusal as refusal:
            status, answer = refusal.status, {"message": refusal.message, "documentation_url": "http://fake/docs"}
        if fault:
            self._fail(fault, path, answer)
            return
        self._send(path, dict(parse_qsl(parts.query)), status, answer)

    def _body(self) -> bytes:
        length = self.headers.get("content-length")
        if length is not None:
            return self.rfile.read(int(length))
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return b""
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        state = self.server.state
        authorization = self.headers.get("authorization", "")
        words = path.strip("/").split("/")
        if words[0] == "app":
            self._check_jwt(authorization)
            if len(words) == 4 and words[1] == "installations" and words[3] == "access_tokens":
                return installation_token(state, int(words[2]))
            return 200, {"id": state.app_id, "slug": state.slug}
        if words[0] != "repos" or len(words) < 3:
            raise Refusal(404, "Not Found")
        rest = path.removeprefix(f"/repos/{words[1]}/{words[2]}")
        for method, pattern, permission, level, handler in ROUTES:
            match = pattern.fullmatch(rest)
            if match and method == self.command:
                may(state, authorization, permission, level)
                repository = state.repositories.get(f"{words[1]}/{words[2]}")
                if repository is None:
                    raise Refusal(404, "Not Found")
                with state.lock:
                    return handler(Asked(state, repository, body, query, match.groups()))
        raise Refusal(404, "Not Found")

    def _check_jwt(self, authorization: str) -> None:
        kind, _, text = authorization.partition(" ")
        try:
            claims = jwt.decode(text, self.server.state.public_key, algorithms=["RS256"], options={"require": ["exp"]})
        except jwt.PyJWTError as error:
            raise Refusal(401, f"A JSON web token could not be decoded: {error}") from error
        if kind != "Bearer" or str(claims.get("iss")) != str(self.server.state.app_id):
            raise Refusal(401, "Integration not found")
        if claims["exp"] - claims.get("iat", 0) > 660:
            raise Refusal(401, "'Expiration time' claim is too far in the future")

    def _fail(self, fault: Fault, path: str, answer: Any) -> None:
        self.server.state.requests.append((self.command, path, -1))
        self.close_connection = True
        if fault.kind == "timeout":
            time.sleep(fault.seconds)
            return
        if fault.kind == "reset":
            # Lingering for no time makes the kernel answer with a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if fault.kind == "truncated":
            text = json.dumps(answer or {"message": "cut off" * 50}).encode()
            self._head(200, {"content-type": "application/json", "content-length": str(len(text) + 10)})
            self.wfile.write(text[: len(text) // 2])
            return
        headers = {"content-type": "application/json"}
        status, message = fault.status, "Server Error"
        if fault.kind == "secondary":
            status, message = 403, "You have exceeded a secondary rate limit. Please wait a few minutes."
            headers["retry-after"] = str(int(fault.seconds))
        if fault.kind == "primary":
            status, message = 403, "API rate limit exceeded for installation."
            headers |= {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time() + fault.seconds))}
        text = json.dumps({"message": message}).encode()
        self._head(status, {**headers, "content-length": str(len(text)), "connection": "close"})
        self.wfile.write(text)

    def _send(self, path: str, query: dict[str, str], status: int, answer: Any) -> None:
        headers = {"content-type": "application/json; charset=utf-8", "x-ratelimit-remaining": "4000"}
        if self.command == "GET":
            answer = self._paged(path, query, answer, headers)
        text = json.dumps(answer).encode()
        if self.command == "GET" and status == 200:
            headers["etag"] = f'W/"{hashlib.sha256(text).hexdigest()}"'
            headers["cache-control"] = "private, max-age=60"
            if self.headers.get("if-none-match") == headers["etag"]:
                status, text = 304, b""
        self.server.state.requests.append((self.command, path, status))
        self._head(status, {**headers, "content-length": str(len(text))})
        self.wfile.write(text)

    def _paged(self, path: str, query: dict[str, str], answer: Any, headers: dict[str, str]) -> Any:
        items = answer.get("check_runs") if isinstance(answer, dict) else answer
        if not isinstance(items, list):
            return answer
        size = min(int(query.get("per_page", self.server.state.page_size)), self.server.state.page_size)
        page = int(query.get("page", 1))
        if page * size < len(items):
            following = urlencode({**query, "page": page + 1})
            headers["link"] = f'<{self.server.url}{path}?{following}>; rel="next"'
        shown = items[(page - 1) * size : page * size]
        return {**answer, "check_runs": shown} if isinstance(answer, dict) else shown

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


class _Git:
    """One request of git, passed on to `git http-backend`."""

    def __init__(self, handler: _Handler, path: str, query: str, body: bytes) -> None:
        self._handler = handler
        self._path = path
        self._query = query
        self._body = body

    def serve(self) -> None:
        handler, state = self._handler, self._handler.server.state
        fault = state.fault_for("GIT", self._path)
        if fault:
            handler._fail(fault, self._path, None)
            return
        place, _, rest = self._path.strip("/").partition(".git/")
        repository = state.repositories.get(place)
        writes = "git-receive-pack" in (self._query + rest)
        try:
            self._check(writes)
            if repository is None:
                raise Refusal(404, "Not Found")
        except Refusal as refusal:
            extra = {"www-authenticate": 'Basic realm="GitHub"'} if refusal.status == 401 else {}
            handler._head(refusal.status, {"content-length": "0", **extra})
            return
        status, headers, body = self._run(repository, rest)
        state.requests.append(("GIT", self._path, status))
        if writes and handler.command == "POST":
            state.effect("push", place)
        handler._head(status, {**headers, "content-length": str(len(body))})
        handler.wfile.write(body)

    def _check(self, writes: bool) -> None:
        kind, _, text = self._handler.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            raise Refusal(401, "Requires authentication")
        user, _, token = base64.b64decode(text).decode(errors="replace").partition(":")
        if user != "x-access-token":
            raise Refusal(401, "Bad credentials")
        may(self._handler.server.state, f"token {token}", "contents", "write" if writes else "read")

    def _run(self, repository: Repository, rest: str) -> tuple[int, dict[str, str], bytes]:
        handler = self._handler
        backend = os.path.join(subprocess.check_output(["git", "--exec-path"], text=True).strip(), "git-http-backend")
        env = {
            "PATH": os.environ.get("PATH", ""), "GIT_PROJECT_ROOT": str(handler.server.state.folder),
            "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": f"/{repository.full_name}.git/{rest}",
            "REQUEST_METHOD": handler.command, "QUERY_STRING": self._query, "REMOTE_USER": "app",
            "CONTENT_TYPE": handler.headers.get("content-type", ""), "CONTENT_LENGTH": str(len(self._body)),
            "HTTP_CONTENT_ENCODING": handler.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("git-protocol", ""), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }  # fmt: skip
        done = subprocess.run([shutil.which(backend) or backend], env=env, input=self._body, capture_output=True)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        return status, headers, body
