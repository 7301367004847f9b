"""What the bot keeps beside the durable jobs, in the same database: deliveries, jobs, findings, workers."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from agents.bot.jobs import Job
from agents.bot.settings import BotSettings
from agents.runs import home

DAY = 86400.0
Result = Literal["waiting", "working", "done", "failed", "refused", "stopped"]
_OPEN = ("waiting", "working")

_METADATA = sa.MetaData()
_DELIVERIES = sa.Table(
    "torchtpu_deliveries", _METADATA,
    sa.Column("body", sa.String(64), primary_key=True),
    sa.Column("delivery", sa.String(64), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)  # fmt: skip
_JOBS = sa.Table(
    "torchtpu_jobs", _METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("installation", sa.BigInteger, nullable=False, index=True),
    sa.Column("place", sa.String(200), nullable=False, index=True),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("title", sa.String(500), nullable=False),
    sa.Column("sender", sa.String(120), nullable=False),
    sa.Column("run", sa.String(12), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("result", sa.String(12), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("stop", sa.String(120), nullable=False),
)  # fmt: skip
_FINDINGS = sa.Table(
    "torchtpu_findings", _METADATA,
    sa.Column("place", sa.String(200), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("sha", sa.String(64), nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("findings", sa.Text, nullable=False),
)  # fmt: skip
_WORKERS = sa.Table(
    "torchtpu_workers", _METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)  # fmt: skip


class Budget(Exception):
    """There is no room for another job; the text says which limit it is."""


class Store:
    """The tables.

    Args:
        settings: Name the database.
    """

    def __init__(self, settings: BotSettings) -> None:
        self._settings = settings
        self._engine = _engine(settings)
        # Several processes may start at once, and each finds that the tables are not there.
        for attempt in range(5):
            try:
                _METADATA.create_all(self._engine)
                break
            except (OperationalError, ProgrammingError, IntegrityError):
                if attempt == 4:
                    raise
                time.sleep(0.2 * (attempt + 1))

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()

    def claim(self, body: str, delivery: str, keep: Callable[[sa.Connection], None]) -> bool:
        """Whether a delivery is the first with that body, or the same one sent again.

        The id of a delivery is not signed: the same signed body under another id is a replay.

        Args:
            body: Hash of the body.
            delivery: Its id.
            keep: Keeps what the first one asks for, in the same transaction.
        """
        with contextlib.suppress(IntegrityError), self._engine.begin() as connection:
            connection.execute(_DELIVERIES.insert().values(body=body, delivery=delivery, at=time.time()))
            keep(connection)
            return True
        with self._engine.connect() as connection:
            owner = connection.execute(sa.select(_DELIVERIES.c.delivery).where(_DELIVERIES.c.body == body)).scalar()
        return owner == delivery

    def admit(self, job: Job, most: int) -> None:
        """Count a long job on the budgets; one that is counted already is so once.

        Args:
            job: The job.
            most: Long jobs of the repository in 24 hours, by its own settings.

        Raises:
            Budget: A limit is reached.
        """
        limits = self._settings
        with self._engine.begin() as connection:
            self._alone(connection, job)
            if connection.execute(sa.select(_JOBS.c.id).where(_JOBS.c.id == job.id)).first():
                return
            recent = sa.select(sa.func.count()).select_from(_JOBS).where(
                _JOBS.c.at > time.time() - DAY, _JOBS.c.result != "refused"
            )  # fmt: skip
            of_repository = connection.execute(recent.where(_JOBS.c.place == job.place)).scalar_one()
            if of_repository >= min(most, limits.repository_jobs):
                raise Budget(f"{job.place} has used its {min(most, limits.repository_jobs)} jobs of 24 hours")
            of_installation = connection.execute(recent.where(_JOBS.c.installation == job.installation)).scalar_one()
            if of_installation >= limits.installation_jobs:
                raise Budget(f"the installation has used its {limits.installation_jobs} jobs of 24 hours")
            connection.execute(_JOBS.insert().values(**_row(job)))

    def _alone(self, connection: sa.Connection, job: Job) -> None:
        """Keep two jobs of one installation from being counted at the same time; SQLite has one writer anyway."""
        if self._settings.is_postgres:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": job.installation})

    def begin(self, job: Job) -> bool:
        """Note that a job is being worked on; False where somebody asked to stop it."""
        with self._engine.begin() as connection:
            connection.execute(
                _JOBS.update().where(_JOBS.c.id == job.id, _JOBS.c.result.in_(_OPEN)).values(result="working")
            )
        return not self.stopped_by(job)

    def end(self, job: Job, result: Result, detail: str = "") -> None:
        """Note how a job ended."""
        with self._engine.begin() as connection:
            connection.execute(_JOBS.update().where(_JOBS.c.id == job.id).values(result=result, detail=detail[:2000]))

    def stopped_by(self, job: Job) -> str:
        """Who asked to stop a job, or nobody."""
        with self._engine.connect() as connection:
            return str(connection.execute(sa.select(_JOBS.c.stop).where(_JOBS.c.id == job.id)).scalar() or "")

    def stop(self, place: str, number: int, who: str) -> list[str]:
        """Ask the open jobs of a thread to stop; their titles."""
        mine = (_JOBS.c.place == place, _JOBS.c.number == number, _JOBS.c.result.in_(_OPEN))
        return self._stop(mine, who)

    def stop_installation(self, installation: int) -> None:
        """Ask all open jobs of an installation to stop."""
        self._stop((_JOBS.c.installation == installation, _JOBS.c.result.in_(_OPEN)), "the end of installation")

    def _stop(self, where: Sequence[sa.ColumnElement[bool]], who: str) -> list[str]:
        with self._engine.begin() as connection:
            titles = connection.execute(sa.select(_JOBS.c.title).where(*where).order_by(_JOBS.c.at)).scalars().all()
            connection.execute(_JOBS.update().where(*where).values(stop=who))
        return [str(title) for title in titles]

    def jobs(self, place: str, number: int) -> list[dict[str, Any]]:
        """The newest jobs of a thread, newest first."""
        chosen = sa.select(_JOBS).where(_JOBS.c.place == place, _JOBS.c.number == number)
        with self._engine.connect() as connection:
            rows = connection.execute(chosen.order_by(_JOBS.c.at.desc()).limit(10)).mappings().all()
        return [dict(row) for row in rows]

    def keep_findings(self, job: Job, sha: str, summary: str, findings: list[dict[str, Any]]) -> None:
        """Keep what the last job of a thread found, for `explain` and `fix`."""
        values = {"sha": sha, "summary": summary, "findings": json.dumps(findings)}
        key = (_FINDINGS.c.place == job.place, _FINDINGS.c.number == job.number)

        def write() -> None:
            with self._engine.begin() as connection:
                if not connection.execute(_FINDINGS.update().where(*key).values(**values)).rowcount:
                    connection.execute(_FINDINGS.insert().values(place=job.place, number=job.number, **values))

        try:
            write()
        except IntegrityError:  # another job of the thread was a moment quicker
            write()

    def findings(self, job: Job) -> tuple[str, str, list[dict[str, Any]]] | None:
        """Commit, summary and findings of the last job of a thread."""
        chosen = sa.select(_FINDINGS).where(_FINDINGS.c.place == job.place, _FINDINGS.c.number == job.number)
        with self._engine.connect() as connection:
            row = connection.execute(chosen).mappings().first()
        return (row["sha"], row["summary"], json.loads(row["findings"])) if row else None

    def beat(self, worker: str) -> None:
        """Say that a worker lives."""
        now = time.time()
        with self._engine.begin() as connection:
            if not connection.execute(_WORKERS.update().where(_WORKERS.c.id == worker).values(at=now)).rowcount:
                connection.execute(_WORKERS.insert().values(id=worker, at=now))

    def leave(self, worker: str) -> None:
        """Say that a worker has ended, so that its jobs need not wait for its lease."""
        with self._engine.begin() as connection:
            connection.execute(_WORKERS.delete().where(_WORKERS.c.id == worker))

    def living(self) -> set[str]:
        """The workers whose lease holds."""
        since = time.time() - self._settings.lease_seconds
        with self._engine.connect() as connection:
            return set(connection.execute(sa.select(_WORKERS.c.id).where(_WORKERS.c.at > since)).scalars())

    def tidy(self, days: float = 30.0) -> None:
        """Forget deliveries and workers of long ago; GitHub redelivers for three days."""
        before = time.time() - days * DAY
        with self._engine.begin() as connection:
            connection.execute(_DELIVERIES.delete().where(_DELIVERIES.c.at < before))
            connection.execute(_WORKERS.delete().where(_WORKERS.c.at < time.time() - DAY))


def _row(job: Job) -> dict[str, Any]:
    return {
        "id": job.id, "installation": job.installation, "place": job.place, "number": job.number,
        "title": job.title[:500], "sender": job.sender, "run": job.run, "at": time.time(), "result": "waiting",
        "detail": "", "stop": "",
    }  # fmt: skip


def _engine(settings: BotSettings) -> sa.Engine:
    if settings.is_postgres:
        url = sa.make_url(settings.database).set(drivername="postgresql+psycopg")
        return sa.create_engine(url, pool_size=5, max_overflow=5, pool_pre_ping=True)
    if not settings.database_url:
        (home() / "bot").mkdir(parents=True, exist_ok=True, mode=0o700)
    engine = sa.create_engine(settings.database)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # Readers do not wait for the writer, and a commit costs one write; a writer waits for its turn.
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.isolation_level = "IMMEDIATE"

    return engine
