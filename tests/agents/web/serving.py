"""The pages on a real server: in a thread of the test, or as the command in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

import httpx
import uvicorn
from playwright.sync_api import Page
from pydantic import SecretStr

from agents.web.app import create_app
from agents.web.settings import ServeSettings

ROOT = Path(__file__).resolve().parents[3]


def keep(tab: Page, name: str) -> None:
    """Keep a picture of a page with the other things that a run of the tests leaves in `out`."""
    folder = ROOT / "out" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=folder / f"{name}.png")


class Visit(httpx.Client):
    """A client with cookies, which knows how a form of a page is sent."""

    def csrf(self, path: str = "/runs/new") -> str:
        """The word of a page's forms."""
        found = re.search(r'name="csrf" (?:content|value)="([0-9a-f]+)"', self.get(path).text)
        assert found, f"{path} has no form"
        return found[1]

    def fill(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as a browser does."""
        page = "/sign-in" if path == "/sign-in" else "/runs/new"
        return self.post(path, data={"csrf": self.csrf(page), **fields})

    def tell(self, path: str, body: object) -> httpx.Response:
        """Send JSON as the pages' scripts do."""
        return self.post(path, json=body, headers={"x-csrf-token": self.csrf()})


class Served:
    """A server in a thread; use it as a context manager."""

    def __init__(self, token: str = "", most_runs: int = 2) -> None:
        self.token = token
        self._app = create_app(ServeSettings(token=SecretStr(token), most_runs=most_runs))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(self._app, log_level="error", lifespan="on"))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def visit(self, **options: object) -> Visit:
        """A new visitor."""
        return Visit(base_url=self.url, timeout=60, **options)

    def signed_in(self) -> Visit:
        """A visitor who has shown the token."""
        visitor = self.visit()
        assert visitor.fill("/sign-in", token=self.token).status_code == 303
        return visitor

    def __enter__(self) -> Served:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server did not start"
            time.sleep(0.02)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._app.state.closing.set()
        self._server.should_exit = True
        self._thread.join(60)
        self._socket.close()


class ServedByCommand:
    """`torchtpu-agent serve` as a child; use it as a context manager.

    Args:
        folder: Where it starts.
        arguments: Further words.
        env: Further variables.
    """

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **env}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agents.cli", "serve", "--port", "0", *arguments],
            cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        found = re.search(r"http://\S+?(?=/ )", self.greeting)
        assert found, self.greeting + self.process.stdout.read()
        self.url = found[0]

    def __enter__(self) -> ServedByCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Ask it to end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
