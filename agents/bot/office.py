"""What a worker does with a job: whether it may be done, the work, and what is written to GitHub of it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from agents.bot import permissions, quick, repository_settings, writes
from agents.bot.checkout import CheckoutError
from agents.bot.child import Stopped
from agents.bot.closing import Bell
from agents.bot.desk import Desk, NotPossible
from agents.bot.github import App, Place
from agents.bot.jobs import Job
from agents.bot.outcome import Outcome
from agents.bot.repository_settings import RepositorySettings, SettingsError
from agents.bot.retrying import Refused
from agents.bot.settings import BotSettings
from agents.bot.store import Budget, Store
from agents.bot.tasks import fix, migrate, profile, scan, verify
from tools.errors import UserError

_LOG = logging.getLogger("torchtpu.bot")
_COMMANDS: dict[str, Callable[[Desk], Outcome]] = {
    "migrate": migrate.migrate,
    "scan": scan.of_command,
    "verify": verify.verify,
    "profile": profile.profile,
    "fix": fix.fix,
}


class Office:
    """The steps of a job. Each may be done twice: a worker may die after any of them and before it is noted.

    Args:
        settings: Of the bot.
    """

    def __init__(self, settings: BotSettings) -> None:
        self.settings = settings
        self.bell = Bell()
        self.store = Store(settings)
        self.app = App(settings, self.bell)

    def admit(self, job: Job) -> bool:
        """React, see who asks, answer what can be answered; whether there is work left for a long job."""
        if job.kind in ("installed", "removed"):
            if job.kind == "removed":
                self.store.stop_installation(job.installation)
            return False
        try:
            with self._place(job) as place:
                return self._admit(place, job)
        except Refused as error:
            _LOG.warning("job %s of %s: %s", job.id, job.place, error)
            self.store.end(job, "failed", str(error))
            return False

    def _admit(self, place: Place, job: Job) -> bool:
        if not permissions.may_write(place, job.sender):
            return self._stranger(place, job)
        if job.comment:
            writes.react(place, job.comment, "confused" if job.kind == "mistake" else "eyes")
        if job.kind == "mistake":
            self._say(place, job, f"{job.said} `/torchtpu help` lists the commands.")
            return False
        if not job.is_long:
            self._say(place, job, quick.answer(job, self.store))
            return False
        return self._long(place, job)

    def _stranger(self, place: Place, job: Job) -> bool:
        """Somebody without write access: told once in a thread, and nothing else is done."""
        if job.kind == "change":
            if self._wishes(place).pull_requests.anyone:
                return self._long(place, job)
            self._check_refused(place, job)
        elif job.comment:
            writes.react(place, job.comment, "-1")
            said = f"`{job.sender}` has no write access to this repository, which these commands need."
            writes.comment(place, job.number, f"stranger:{job.sender}", said)
        return False

    def _check_refused(self, place: Place, job: Job) -> None:
        assert job.sha is not None
        title = "Not scanned: the author has no write access"
        summary = f"{title}. Somebody who has may comment `/torchtpu scan`."
        writes.check(
            place, job.sha, "torchtpu", conclusion="neutral", title=title, summary=summary,
            external=f"stranger:{job.number}",
        )  # fmt: skip

    def _long(self, place: Place, job: Job) -> bool:
        try:
            wishes = self._wishes(place)
            if not _wanted(job, wishes):
                return False
            self.store.admit(job, wishes.budget.jobs)
        except SettingsError as error:
            self._refuse(place, job, str(error))
            return False
        except Budget as error:
            self._refuse(place, job, f"Not done: {error}. Try again tomorrow, or ask whoever runs the server.")
            return False
        return True

    def _refuse(self, place: Place, job: Job, said: str) -> None:
        if job.kind == "command":
            self._say(place, job, said)
        elif job.sha is not None:
            title = said.splitlines()[0]
            writes.check(
                place, job.sha, "torchtpu", conclusion="neutral", title=title, summary=said, external=f"no:{job.run}"
            )

    def _say(self, place: Place, job: Job, text: str) -> None:
        writes.comment(place, job.number, f"job:{job.run}", text)

    def _wishes(self, place: Place) -> RepositorySettings:
        # Of the default branch, never of the change: who proposes a change does not set its terms.
        return repository_settings.read(place.file(repository_settings.FILE))

    def work(self, job: Job) -> Outcome:
        """Do a long job, up to what is written of it."""
        if not self.store.begin(job):
            return _bad(job, "stopped", f"Stopped by {self.store.stopped_by(job)} before it began.")
        try:
            with self._place(job) as place:
                desk = Desk(self.settings, self.store, place, job, self._wishes(place))
                if job.kind == "change":
                    return scan.of_change(desk)
                if job.kind == "push":
                    return scan.of_push(desk)
                assert job.command is not None
                return _COMMANDS[job.command.name](desk)
        except Stopped as error:
            return _bad(job, "stopped", str(error))
        except NotPossible as error:
            return _bad(job, "refused", str(error))
        except (CheckoutError, SettingsError, Refused) as error:
            return _bad(job, "failed", str(error))
        except UserError as error:
            return _bad(job, "failed", f"{error.message} {error.remedy}")
        except Exception:  # noqa: BLE001 - a fault of ours is told in the thread, and does not end the worker
            _LOG.error("job %s failed:\n%s", job.id, traceback.format_exc())
            return _bad(job, "failed", "The bot failed on this. The server's log says where.")

    def publish(self, job: Job, outcome: Outcome) -> None:
        """Write to GitHub what a job came to; done twice, it is the same as done once."""
        try:
            with self._place(job) as place:
                self._publish(place, job, outcome)
        except Refused as error:
            _LOG.warning("result of %s: %s", job.id, error)
            self.store.end(job, "failed", f"The result could not be written: {error}")
        else:
            self.store.end(job, outcome.result, outcome.headline)

    def _publish(self, place: Place, job: Job, outcome: Outcome) -> None:
        more: list[str] = []
        if outcome.pull is not None:
            plan = outcome.pull
            made = writes.pull(place, plan.branch, plan.base, plan.title, f"pull:{job.run}", plan.text)
            more.append(f"Draft pull request: #{made['number']}")
        if outcome.check is not None:
            check = outcome.check
            writes.check(
                place, check.sha, check.name, conclusion=check.conclusion, title=check.title, summary=check.summary,
                annotations=check.annotations, external=check.external,
            )  # fmt: skip
        if outcome.sarif is not None:
            sarif = outcome.sarif
            more.append(f"SARIF: {writes.sarif(place, sarif.sha, sarif.ref, sarif.document, 'torchtpu-agent')}")
        if job.kind == "command":
            self._say(place, job, "\n\n".join([outcome.text, *more]))

    def _place(self, job: Job) -> Place:
        return self.app.place(job.installation, job.owner, job.repository)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()


def _wanted(job: Job, wishes: RepositorySettings) -> bool:
    if job.again:
        return True
    if job.kind == "push":
        return wishes.push.scan
    if job.kind == "change":
        return wishes.pull_requests.scan and (not job.fork or wishes.pull_requests.anyone)
    return True


def _bad(job: Job, result: str, said: str) -> Outcome:
    outcome = Outcome.model_validate({"result": result, "headline": said.splitlines()[0], "text": said})
    if job.kind in ("change", "push") and job.sha is not None:
        title = f"Not scanned: {said.splitlines()[0]}"
        check = {
            "sha": job.sha, "name": "torchtpu", "conclusion": "neutral", "title": title,
            "summary": said, "external": f"bad:{job.run}",
        }  # fmt: skip
        return Outcome.model_validate({**outcome.model_dump(), "check": check})
    return outcome
