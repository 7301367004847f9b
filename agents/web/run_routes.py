"""Pages of runs: the list, the form that starts one, its progress, its report and its files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from agents import runs
from agents.record import lines_of
from agents.runs import RunFolder
from agents.state import STAGES
from agents.web import listing, report, started, starting, stream
from agents.web.pages import page
from agents.web.started import Started
from tools import git
from tools.errors import UserError

router = APIRouter(include_in_schema=False)
_LOG = re.compile(r"(?:run|setup)-\d{1,4}(?:-\d{1,4})?\.log")
_MOST_TAIL = 6000
_PROFILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; sandbox"
_STATES = get_args(runs.Status)
_VERDICTS = ("passed", "failed", "nothing shown", "unfinished")


@router.get("/")
def home() -> RedirectResponse:
    """The list of runs is where one starts."""
    return RedirectResponse("/runs", 303)


@router.get("/runs")
def list_runs(
    request: Request, state: str = "", repository: str = "", verdict: str = "", text: str = "", at: int = 1
) -> HTMLResponse:
    """The list of runs, narrowed by what is asked for."""
    narrowed = listing.Filter(state=state, repository=repository, verdict=verdict, text=text)
    every = listing.rows(started.of(request.app))
    kept = [row for row in every if narrowed.keeps(row)]
    last = max(1, -(-len(kept) // listing.PAGE))
    at = min(max(at, 1), last)
    return page(
        request, "runs.html", rows=kept[(at - 1) * listing.PAGE : at * listing.PAGE], count=len(kept),
        total=len(every), narrowed=narrowed, at=at, last=last, states=_STATES, verdicts=_VERDICTS,
        repositories=sorted({row.source for row in every}), stages=STAGES,
        query=urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "at"]),
    )  # fmt: skip


@router.get("/runs/new")
def new_run(request: Request, source: str = "", entry: str = "") -> HTMLResponse:
    """The form that starts a run."""
    values = {"source": source, "entries": entry, "model": starting.default_model(), "device": "auto", "verify": True}
    return _form(request, values)


def _form(request: Request, values: dict[str, object], problem: str = "", status: int = 200) -> HTMLResponse:
    given = {"steps": "", "target": "", "unsafe_fixes": False, "dry_run": False, **values}
    return page(request, "new_run.html", status, values=given, problem=problem, targets=_targets())


def _targets() -> list[str]:
    from torchtpu.targets import GENERATIONS

    return [f"{name}-{chips}" for name in GENERATIONS for chips in (1, 8)]


@router.post("/runs")
def start_run(
    request: Request,
    source: Annotated[str, Form()] = "",
    entries: Annotated[str, Form()] = "",
    steps: Annotated[str, Form()] = "",
    target: Annotated[str, Form()] = "",
    device: Annotated[str, Form()] = "auto",
    model: Annotated[str, Form()] = "",
    verify: Annotated[bool, Form()] = False,
    unsafe_fixes: Annotated[bool, Form()] = False,
    dry_run: Annotated[bool, Form()] = False,
) -> Response:
    """Start a run, or show the form again with what is wrong."""
    values: dict[str, object] = {
        "source": source, "target": target, "device": device, "model": model, "verify": verify,
        "unsafe_fixes": unsafe_fixes, "dry_run": dry_run,
    }  # fmt: skip
    try:
        asked = starting.StartRun.model_validate({**values, "entries": [entries], "steps": steps.strip() or None})
        run_id = started.of(request.app).start(asked.request())
    except ValidationError as error:
        return _form(request, {**values, "entries": entries, "steps": steps}, _said(error), 422)
    except UserError as error:
        shown = {**values, "entries": entries, "steps": steps}
        return _form(request, shown, f"{error.message} {error.remedy}".strip(), 422)
    return RedirectResponse(f"/runs/{run_id}", 303)


def _said(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])


@router.get("/runs/{run_id}")
def show_run(request: Request, run_id: str) -> HTMLResponse:
    """A run: its report where there is one, else its progress."""
    start = started.start_of(run_id) if re.fullmatch(r"[0-9a-f]{1,64}", run_id) else None
    try:
        folder = runs.find(run_id)
    except UserError:
        if start is None:
            raise
        # A run whose input could not be used leaves nothing behind but what its child said.
        return page(request, "not_started.html", start=start, said=started.said(run_id))
    children = started.of(request.app)
    row, owned = listing.row_of(folder, children), children.owns(run_id)
    if row.status == "finished":
        return page(request, "report.html", row=row, it=report.gather(folder), stages=STAGES)
    said = "" if owned else started.said(run_id)
    return page(request, "progress.html", row=row, owned=owned, lines=lines_of(folder.path), said=said)


@router.get("/runs/{run_id}/events")
async def run_events(request: Request, run_id: str) -> Response:
    """The progress of a run as it comes."""
    folder = runs.find(run_id, damaged=True)
    return stream.streaming(request, _events(folder, started.of(request.app), stream.last_seen(request)))


async def _events(folder: RunFolder, children: Started, seen: int) -> AsyncIterator[str]:
    tail = ""
    while True:
        # Asked before the lines are read: what is said last must not be missed.
        going = _is_going(folder, children)
        for line in lines_of(folder.path, seen):
            seen += 1
            yield stream.event("progress", line.model_dump(), seen)
        if (now := log_tail(folder)) != tail:
            tail = now
            yield stream.event("output", {"text": tail})
        if not going:
            yield stream.event("end", {"status": _status(folder)})
            return
        yield ""
        await asyncio.sleep(stream.BETWEEN)


def _is_going(folder: RunFolder, children: Started) -> bool:
    return children.owns(folder.id) or _status(folder) == "running"


def _status(folder: RunFolder) -> str:
    try:
        return runs.status(folder)
    except (OSError, ValidationError):
        return "failed"


def log_tail(folder: RunFolder) -> str:
    """The end of the newest output of the user's program."""
    logs = [path for path in folder.path.glob("*.log") if _LOG.fullmatch(path.name)]
    if not logs:
        return ""
    try:
        newest = max(logs, key=lambda path: path.stat().st_mtime)
        with newest.open("rb") as file:
            file.seek(max(0, newest.stat().st_size - _MOST_TAIL))
            return file.read(_MOST_TAIL).decode("utf-8", "replace")
    except OSError:  # a run whose input is of no use is removed while it is looked at
        return ""


@router.post("/runs/{run_id}/{action}")
def act(request: Request, run_id: str, action: Literal["stop", "resume", "approve", "delete"]) -> RedirectResponse:
    """Stop a run, go on with it, accept its plan, or remove it."""
    folder = runs.find(run_id, damaged=action == "delete")
    children = started.of(request.app)
    if action == "stop":
        if not children.stop(run_id):
            raise UserError(f"Run {run_id} was not started here.", "Stop it where it was started.")
    elif action == "delete":
        runs.delete(folder)
        return RedirectResponse("/runs", 303)
    else:
        children.resume(folder, approve=action == "approve")
    return RedirectResponse(f"/runs/{run_id}", 303)


@router.get("/runs/{run_id}/files/{name}")
def run_file(run_id: str, name: str) -> Response:
    """A file of a run: the report, its patch, or the output of a program."""
    folder = runs.find(run_id)
    kinds = {"report.md": "text/markdown", "report.json": "application/json"}
    if name == "migration.patch":
        return _patch(folder)
    path = folder.path / name
    if (name in kinds or _LOG.fullmatch(name)) and path.is_file() and not path.is_symlink():
        return FileResponse(path, media_type=f"{kinds.get(name, 'text/plain')}; charset=utf-8")
    raise UserError(f"Run {run_id} has no file {name[:100]}.")


def _patch(folder: RunFolder) -> Response:
    made = report.read_report(folder)
    if not made.commits:
        raise UserError(f"Run {folder.id} changed nothing.")
    try:
        data = git.make_patch(folder.tree, made.base, made.commits[-1].sha)
    except (git.GitError, OSError) as error:
        raise UserError(f"The tree of run {folder.id} is gone.") from error
    headers = {"content-disposition": f'attachment; filename="torchtpu-{folder.id}.patch"'}
    return Response(data, media_type="text/x-diff; charset=utf-8", headers=headers)


@router.get("/runs/{run_id}/profile/{number}")
def run_profile(run_id: str, number: int) -> FileResponse:
    """A profile as the page that `profile --html` writes; it has styles of its own and no scripts."""
    path: Path = runs.find(run_id).path / "profile" / str(number) / "profile.html"
    if not path.is_file():
        raise UserError(f"Run {run_id} has no profile {number}.")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": _PROFILE_POLICY})
