"""`torchtpu-agent worker`: works on the jobs of the pull request bot, beside any number of others."""

from __future__ import annotations

import importlib.util
import logging
import threading
from typing import Annotated

import typer

from agents import interrupts
from agents.cli.common import guarded
from agents.cli.output import echo
from tools.errors import Exit, UserError

_NEEDED = ("dbos", "githubkit", "fastapi")
_JOBS = "Long jobs that are worked on at once. Default: TORCHTPU_GITHUB_JOBS_AT_ONCE, else 1."


@guarded
def worker(
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help=_JOBS)] = None,
) -> Exit | None:
    """Work on what people ask the pull request bot for, until it is ended.

    `torchtpu-agent serve` has a worker of its own. Others share its jobs where TORCHTPU_DATABASE_URL names a
    Postgres; the job of a worker that dies is gone on with by another. Settings are read from TORCHTPU_GITHUB_*,
    see docs/bot.md. Needs the extras: pip install "torchtpu-agent[server,postgres]".

    For example:

        TORCHTPU_DATABASE_URL=postgresql://bot@db/bot torchtpu-agent worker --jobs 2

    Exit codes: 0 it was ended; 2 wrong usage or settings; 3 a package is missing; 5 a fault of ours.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        message = f"The worker needs packages that are not installed: {', '.join(missing)}."
        raise UserError(message, 'pip install "torchtpu-agent[server,postgres]"', Exit.ENVIRONMENT)
    from agents.bot.settings import PREFIX, configured
    from agents.bot.worker import Worker

    settings = configured()
    if settings is None:
        raise UserError(f"No GitHub app is named: {PREFIX}APP_ID is not set.", "docs/bot.md says how to set it up.")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    chosen = settings.model_copy(update={"jobs_at_once": jobs}) if jobs else settings
    at_work = Worker(chosen)
    at_work.start()
    echo(f"worker   {at_work.id[:8]} takes jobs (Ctrl-C ends it; what it works on is gone on with later)")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        interrupts.closing()
    finally:
        at_work.stop()
    return None
