"""Takes deliveries of GitHub: checks them, keeps what they ask for, and answers at once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from agents.bot import bodies, names
from agents.bot.events import BadEvent, job_of
from agents.bot.jobs import Job
from agents.bot.queue import Jobs
from agents.bot.settings import BotSettings
from agents.bot.signature import is_signed

_LOG = logging.getLogger("torchtpu.bot")


class Taken(BaseModel):
    """The answer to a delivery."""

    taken: bool
    job: str = ""
    detail: str = ""


class _Lazily:
    """Opens the database at the first delivery, in a thread: an application may be made without being served."""

    def __init__(self, settings: BotSettings) -> None:
        self._settings = settings
        self._jobs: Jobs | None = None
        self._lock = threading.Lock()

    def jobs(self) -> Jobs:
        with self._lock:
            if self._jobs is None:
                self._jobs = Jobs(self._settings)
            return self._jobs

    def keep(self, body: str, job: Job) -> bool:
        """Enqueue a job unless its body came before under another id."""
        return self.jobs().add(job, body)

    def close(self) -> None:
        with self._lock:
            if self._jobs is not None:
                self._jobs.close()
                self._jobs = None


def router(settings: BotSettings) -> APIRouter:
    """The route `POST /github/webhook`."""
    lazily = _Lazily(settings)
    routes = APIRouter(on_shutdown=[lazily.close])

    @routes.post(
        "/github/webhook", status_code=202, responses={code: {"model": Taken} for code in (400, 401, 413, 503)}
    )
    async def deliver(request: Request) -> JSONResponse:
        """Take one delivery."""
        try:
            body = await bodies.read(request.stream(), request.headers.get("content-length"))
            # Before anything in it is looked at.
            if not is_signed(
                settings.webhook_secret.get_secret_value(), body, request.headers.get("x-hub-signature-256")
            ):
                return _answer(401, detail="The signature is missing or wrong.")
            job = _read(request, body, settings.slug)
        except bodies.BadBody as error:
            return _answer(error.status, detail=error.reason)
        except (BadEvent, ValueError) as error:
            return _answer(400, detail=str(error))
        if job is None:
            return _answer(202, detail="There is nothing to do.")
        try:
            fresh = await asyncio.to_thread(lazily.keep, hashlib.sha256(body).hexdigest(), job)
        except SQLAlchemyError:
            _LOG.exception("the database cannot be reached")
            return _answer(503, detail="The database cannot be reached; deliver again later.")
        return _answer(202, job.id, "" if fresh else "The same body came before under another id.", taken=fresh)

    return routes


def _read(request: Request, body: bytes, slug: str) -> Job | None:
    event = request.headers.get("x-github-event", "")
    delivery = names.delivery(request.headers.get("x-github-delivery", ""))
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise BadEvent("The content type is not application/json; choose it in the app's settings.")
    return job_of(event, delivery, bodies.parse(body), slug)


def _answer(status: int, job: str = "", detail: str = "", taken: bool = False) -> JSONResponse:
    return JSONResponse(Taken(taken=taken, job=job, detail=detail).model_dump(), status)
