"""What a long job works with: its repository, its folder, its one comment, and children that can be stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from agents.bot import child, writes
from agents.bot.checkout import Checkout
from agents.bot.github import Place
from agents.bot.jobs import Job
from agents.bot.repository_settings import RepositorySettings
from agents.bot.retrying import Refused
from agents.bot.settings import BotSettings
from agents.bot.store import Store
from agents.runs import home
from tools.run import sandbox_available

_LOG = logging.getLogger("torchtpu.bot")


class NotPossible(Exception):
    """The job cannot be done; the text is for the person who asked."""


class Desk:
    """One long job.

    Args:
        settings: Of the bot.
        store: What is kept.
        place: The repository.
        job: The job.
        wishes: The repository's own settings.
    """

    def __init__(
        self, settings: BotSettings, store: Store, place: Place, job: Job, wishes: RepositorySettings
    ) -> None:  # fmt: skip
        self.settings = settings
        self.store = store
        self.place = place
        self.job = job
        self.wishes = wishes
        self.folder = home() / "bot" / job.run
        self.checkout = Checkout(place, self.folder)
        self._comment = 0
        self._said = ""
        self._at = 0.0

    @property
    def comment_name(self) -> str:
        """The mark of the job's one comment."""
        return f"job:{self.job.run}"

    def say(self, text: str, now: bool = False) -> None:
        """Show how far the job is, in its one comment; not more often than the settings allow."""
        if self.job.kind != "command" or text == self._said:
            return
        if not now and time.monotonic() - self._at < self.settings.progress_seconds:
            return
        body = f"**{self.job.title}** is being worked on.\n\n{text}\n\n`/torchtpu stop` ends it."
        try:
            if self._comment:
                writes.edit(self.place, self._comment, self.comment_name, body)
            else:
                self._comment = writes.comment(self.place, self.job.number, self.comment_name, body)
        except Refused as error:
            _LOG.warning("progress of %s: %s", self.job.id, error)  # the result itself is what counts
        self._said, self._at = text, time.monotonic()

    def command(
        self, arguments: Sequence[str], tick: Callable[[], None] = lambda: None, name: str = "child"
    ) -> child.Ended:
        """Run one of our own commands.

        Raises:
            Stopped: Somebody asked for it, or the time is up.
        """
        return child.run(
            arguments, self.folder, bell=self.place.app.bell, minutes=self.settings.job_minutes,
            stop=lambda: self.store.stopped_by(self.job), tick=tick, name=name,
        )  # fmt: skip

    def need_sandbox(self) -> None:
        """Refuse to run somebody's program where nothing keeps it from this machine.

        Raises:
            NotPossible: There is no bubblewrap, and the settings do not do without.
        """
        if sandbox_available():
            return
        if self.fork or not self.settings.unsandboxed:
            raise NotPossible("The server has no sandbox (bubblewrap), so it runs no programs of repositories.")

    @property
    def sandbox_option(self) -> list[str]:
        """What to say of the sandbox on a command line."""
        return ["--no-sandbox"] if self.settings.unsandboxed and not self.fork and not sandbox_available() else []

    @cached_property
    def fork(self) -> bool:
        """Whether the job is about code that comes from another repository."""
        if self.job.fork or not self.job.is_pull:
            return self.job.fork
        head = self.place.send("GET", f"/pulls/{self.job.number}")["head"].get("repo") or {}
        return str(head.get("full_name")).lower() != self.job.place.lower()

    @property
    def run_link(self) -> str:
        """A line with the address of the run's page, where the pages have one."""
        if not self.settings.public_url:
            return ""
        return f"\n[The run's page]({self.settings.public_url.rstrip('/')}/runs/{self.job.run})\n"

    def path(self, name: str) -> Path:
        """A file in the job's folder."""
        return self.folder / name
