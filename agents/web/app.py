"""The web application: pages, JSON, health and metrics behind one guard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from agents.report.make import version
from agents.runs import NotThere
from agents.web import api, chat_routes, children, health, run_routes, sign_in
from agents.web.chats import Chats
from agents.web.guard import Guard
from agents.web.metrics import Measured, Metrics
from agents.web.pages import HERE, page
from agents.web.settings import ServeSettings, check
from agents.web.started import Started
from agents.web.visitors import Visitors, secret_of
from tools.errors import Exit, UserError


class _Static(StaticFiles):
    """Scripts and styles; a browser asks whether they changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """See the base class."""
        answer = await super().get_response(path, scope)
        answer.headers["cache-control"] = "no-cache"
        return answer


def create_app(settings: ServeSettings) -> FastAPI:
    """The application; its children end with it.

    Raises:
        UserError: The settings would let strangers in.
    """
    check(settings)
    app = FastAPI(
        title="torchtpu-agent", version=version(), docs_url=None, redoc_url=None, openapi_url="/api/openapi.json",
        lifespan=_lifespan,
    )  # fmt: skip
    app.state.settings = settings
    app.state.visitors = Visitors(secret_of(children.own_folder()), settings.token)
    app.state.started = Started(settings.most_runs)
    app.state.chats = Chats(settings.most_chats)
    app.state.metrics = Metrics()
    app.state.closing = threading.Event()
    for router in (sign_in.router, run_routes.router, chat_routes.router, health.router, api.router):
        app.include_router(router)
    _include_bot(app)
    app.mount("/static", _Static(directory=HERE / "static"), name="static")
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Guard, settings=settings, visitors=app.state.visitors)
    app.add_middleware(Measured, metrics=app.state.metrics)
    return app


def _include_bot(app: FastAPI) -> None:
    """The GitHub side, where an app is named; it guards its own path."""
    from agents.bot.settings import configured

    settings = configured()
    if settings is not None:
        from agents.bot.webhook import router

        app.include_router(router(settings))
        if settings.embedded_worker:
            from agents.bot.worker import Worker

            app.state.worker = Worker(settings)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    worker = getattr(app.state, "worker", None)
    if worker is not None:
        await asyncio.to_thread(worker.start)
    try:
        yield
    finally:
        app.state.closing.set()
        if worker is not None:
            await asyncio.to_thread(worker.stop)
        await asyncio.to_thread(app.state.chats.close_all)
        await asyncio.to_thread(app.state.started.close)


def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    status = 404 if isinstance(error, NotThere) else 409 if error.exit_code is Exit.ENVIRONMENT else 400
    return _problem(request, status, error.message, error.remedy)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = "There is no such page." if error.status_code == 404 else str(error.detail)
    answer = _problem(request, error.status_code, said, "")
    answer.headers.update(error.headers or {})
    return answer


def _problem(request: Request, status: int, message: str, remedy: str) -> Response:
    wants_json = request.url.path.startswith("/api/") or "application/json" in request.headers.get("content-type", "")
    if wants_json:
        return JSONResponse({"error": message, "remedy": remedy}, status)
    return page(request, "problem.html", status, message=message, remedy=remedy)
