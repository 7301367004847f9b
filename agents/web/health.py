"""Whether the server lives, whether it can work, and its figures for Prometheus."""

from __future__ import annotations

import os
from collections import Counter

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from pydantic import BaseModel
from starlette.responses import JSONResponse

from agents.runs import home
from agents.web import listing, started

router = APIRouter()


class Health(BaseModel):
    """An answer of a check."""

    ok: bool
    detail: str = ""


@router.get("/healthz")
def healthz() -> Health:
    """The process answers."""
    return Health(ok=True)


@router.get("/readyz", responses={503: {"model": Health}})
def readyz() -> Response:
    """The state directory can be written, without which no run can be started."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        return JSONResponse({"ok": False, "detail": f"the state directory cannot be made: {error.strerror}"}, 503)
    if not os.access(folder, os.W_OK):
        return JSONResponse({"ok": False, "detail": "the state directory cannot be written"}, 503)
    return JSONResponse({"ok": True, "detail": ""})


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    children = started.of(request.app)
    kept: CollectorRegistry = request.app.state.metrics.registry
    now = CollectorRegistry()
    known = Gauge("torchtpu_runs", "Runs in the store.", ["state", "verdict"], registry=now)
    for (state, verdict), count in Counter((row.status, row.verdict) for row in listing.rows(children)).items():
        known.labels(state, verdict).set(count)
    Gauge("torchtpu_runs_working", "Migrations that this server works on.", registry=now).set(children.running())
    Gauge("torchtpu_chats_open", "Chats that are open in this server.", registry=now).set(
        request.app.state.chats.count()
    )
    return Response(generate_latest(kept) + generate_latest(now), media_type=CONTENT_TYPE_LATEST)
