"""Puts jobs into the database, from where workers take them."""

from __future__ import annotations

from dbos import DBOS, DBOSClient, EnqueueOptions

from agents.bot.jobs import Job
from agents.bot.settings import BotSettings
from agents.bot.store import Store

QUICK = "torchtpu-quick"
LONG = "torchtpu-long"
ANSWER = "torchtpu_answer"
WORK = "torchtpu_work"
VERSION = "1"
"""Version of the jobs' steps; a job is gone on with only by workers of the same one."""


class Jobs:
    """The way in for deliveries.

    Args:
        settings: Name the database.
    """

    def __init__(self, settings: BotSettings) -> None:
        self.store = Store(settings)
        # Deliveries may come before the first worker does.
        DBOS.migrate(settings.database)
        self._client = DBOSClient(system_database_url=settings.database)

    def add(self, job: Job) -> None:
        """Enqueue a job; one with that id is there at most once."""
        options: EnqueueOptions = {
            "queue_name": QUICK, "workflow_name": ANSWER, "workflow_id": job.id, "app_version": VERSION,
        }  # fmt: skip
        self._client.enqueue(options, job.model_dump_json())

    def close(self) -> None:
        """Let go of the connections."""
        self._client.destroy()
        self.store.close()
