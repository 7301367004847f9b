"""The same as JSON, for programs: runs and chats under /api. A program sends the token as a bearer token."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from agents import runs, sessions
from agents.record import Line, lines_of
from agents.sessions import SessionCard
from agents.web import listing, started, starting
from tools.errors import UserError


class Problem(BaseModel):
    """What is wrong, and what to do about it."""

    error: str
    remedy: str = ""


class RunState(BaseModel):
    """A run, how far it came, and its report where there is one."""

    run: listing.Row
    progress: list[Line]
    report: dict[str, Any] | None = None


class Begun(BaseModel):
    """A run that was started."""

    id: str


_PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 409, 413)}
router = APIRouter(prefix="/api", responses=_PROBLEMS)


@router.get("/runs")
def list_runs(
    request: Request,
    state: str = "",
    repository: str = "",
    verdict: str = "",
    text: str = "",
    limit: int = Query(100, ge=1, le=1000),
) -> list[listing.Row]:
    """Runs, newest first."""
    narrowed = listing.Filter(state=state, repository=repository, verdict=verdict, text=text)
    return [row for row in listing.rows(started.of(request.app)) if narrowed.keeps(row)][:limit]


@router.post("/runs", status_code=201)
def start_run(request: Request, wanted: starting.StartRun) -> Begun:
    """Start a migration."""
    return Begun(id=started.of(request.app).start(wanted.request()))


@router.get("/runs/{run_id}")
def show_run(request: Request, run_id: str) -> RunState:
    """One run."""
    folder = runs.find(run_id)
    row = listing.row_of(folder, started.of(request.app))
    from agents.web.report import read_report

    document = read_report(folder).model_dump(mode="json") if row.status == "finished" else None
    return RunState(run=row, progress=lines_of(folder.path), report=document)


@router.post("/runs/{run_id}/stop", status_code=202)
def stop_run(request: Request, run_id: str) -> Response:
    """Stop a run that this server works on."""
    runs.find(run_id)
    if not started.of(request.app).stop(run_id):
        raise UserError(f"Run {run_id} is not being worked on here.")
    return JSONResponse({"stopping": run_id}, 202)


@router.get("/chats")
def list_chats() -> list[SessionCard]:
    """Chats, oldest first."""
    return sessions.every()
