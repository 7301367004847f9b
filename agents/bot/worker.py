"""Works on the jobs of the database: durable, on SQLite in one place or on Postgres with any number of workers."""

from __future__ import annotations

import logging
import threading
import uuid

from dbos import DBOS, DBOSConfig, SetWorkflowID

from agents.bot.closing import Bell, Closing
from agents.bot.jobs import Job
from agents.bot.office import Office
from agents.bot.outcome import Outcome
from agents.bot.queue import ANSWER, LONG, QUICK, VERSION, WORK
from agents.bot.settings import BotSettings

_LOG = logging.getLogger("torchtpu.bot")
_QUICK_AT_ONCE = 8
_ALWAYS = 10_000
"""Deaths of workers that a job outlives."""
_office: Office | None = None


def _at_work() -> Office:
    if _office is None:
        raise Closing
    return _office


@DBOS.step(name="torchtpu_admit")
def _admit(text: str) -> bool:
    return _at_work().admit(Job.model_validate_json(text))


@DBOS.step(name="torchtpu_do")
def _do(text: str) -> str:
    return _at_work().work(Job.model_validate_json(text)).model_dump_json()


@DBOS.step(name="torchtpu_publish")
def _publish(text: str, outcome: str) -> None:
    _at_work().publish(Job.model_validate_json(text), Outcome.model_validate_json(outcome))


@DBOS.workflow(name=ANSWER, max_recovery_attempts=_ALWAYS)
def _answer(text: str) -> None:
    """A delivery: reacted to and answered at once, or passed on to those that take long."""
    if _admit(text):
        with SetWorkflowID(f"{Job.model_validate_json(text).id}-work"):
            DBOS.enqueue_workflow(LONG, _work, text)


@DBOS.workflow(name=WORK, max_recovery_attempts=_ALWAYS)
def _work(text: str) -> None:
    """A long job."""
    _publish(text, _do(text))


class Worker:
    """The executor of jobs in this process; there can be one.

    Args:
        settings: Of the bot.
    """

    def __init__(self, settings: BotSettings) -> None:
        self._settings = settings
        self.id = uuid.uuid4().hex
        self._bell = Bell()
        self._beating = threading.Thread(target=self._beat, name="torchtpu-lease", daemon=True)

    def start(self) -> None:
        """Begin to take jobs, those of workers that died too."""
        global _office
        _office = Office(self._settings)
        config: DBOSConfig = {
            "name": "torchtpu-agent", "system_database_url": self._settings.database, "executor_id": self.id,
            "application_version": VERSION, "log_level": "WARNING",
            "notification_listener_polling_interval_sec": self._settings.poll_seconds,
        }  # fmt: skip
        DBOS(config=config)
        _office.store.beat(self.id)
        DBOS.launch()
        poll = self._settings.poll_seconds
        for name, most in ((QUICK, _QUICK_AT_ONCE), (LONG, self._settings.jobs_at_once)):
            DBOS.register_queue(name, worker_concurrency=most, polling_interval_sec=poll, on_conflict="always_update")
        _office.store.tidy()
        self._beating.start()

    def stop(self) -> None:
        """Put the jobs down, unrecorded, so that they are gone on with elsewhere or later."""
        global _office
        office, _office = _office, None
        if office is None:
            return
        self._bell.ring()
        office.bell.ring()
        self._beating.join()
        DBOS.destroy(workflow_completion_timeout_sec=0)
        office.store.leave(self.id)
        office.close()

    def _beat(self) -> None:
        """Say that we live, and take over from workers that no longer do."""
        try:
            while True:
                try:
                    self._take_over()
                except Exception:  # noqa: BLE001 - the database may be away for a while; the lease is lost then, nothing else
                    _LOG.exception("the lease could not be renewed")
                self._bell.wait(self._settings.lease_seconds / 5)
        except Closing:
            return

    def _take_over(self) -> None:
        office = _at_work()
        office.store.beat(self.id)
        living = office.store.living() | {self.id}
        pending = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        dead = sorted({str(one.executor_id) for one in pending} - living)
        if dead:
            # A job is re-enqueued only while it still belongs to the dead one, so two that do this do it once.
            DBOS._recover_pending_workflows(dead)
