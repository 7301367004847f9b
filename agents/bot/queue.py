"""Puts jobs into the database, from where workers take them."""

from __future__ import annotations

import sqlalchemy as sa
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

    def add(self, job: Job, body: str) -> bool:
        """Enqueue a job once; False where its body came before under another id.

        Args:
            job: The job.
            body: Hash of the delivery's body.
        """
        options: EnqueueOptions = {
            "queue_name": QUICK, "workflow_name": ANSWER, "workflow_id": job.id, "app_version": VERSION,
        }  # fmt: skip

        def keep(connection: sa.Connection) -> None:
            self._client.enqueue_in_transaction(connection, options, job.model_dump_json())

        return self.store.claim(body, job.id, keep)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.destroy()
        self.store.close()
