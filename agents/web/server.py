"""Binds the address and serves the application until it is ended."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from agents.web.app import create_app
from agents.web.settings import ServeSettings
from tools.errors import Exit, UserError

_PATIENCE = 3
"""Seconds that open answers have to end."""


class _Server(uvicorn.Server):
    """Tells the streams to end when the server is to, or it would wait for pages that are open."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._pages = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See the base class."""
        self._pages.state.closing.set()
        super().handle_exit(sig, frame)


def run(settings: ServeSettings, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        settings: Where, and who may.
        tell: Told the address.

    Raises:
        UserError: The settings are unsafe, or the address cannot be bound.
    """
    app = create_app(settings)
    with _bound(settings) as listening:
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        who = "sign in with the token" if settings.wants_sign_in else "everybody on this machine may use it"
        tell(f"serving  http://{shown}:{port}/  ({who}; Ctrl-C ends it)")
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=_PATIENCE, server_header=False, date_header=False,
            lifespan="on",
        )  # fmt: skip
        with contextlib.suppress(KeyboardInterrupt):  # the ordinary end of a server
            _Server(config, app).run(sockets=[listening])


def _bound(settings: ServeSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(128)  # whoever is told the address may come at once, and waits until the rest is ready
    except OSError as error:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        raise UserError(
            f"{where} cannot be bound: {error.strerror or error}.", "Choose another --port.", Exit.ENVIRONMENT
        ) from error
    return listening
