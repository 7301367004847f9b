"""A worker is killed in the middle of a job: another one goes on, and nothing is said or made twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.bot.settings import BotSettings
from evals.bot_load import database
from evals.bot_load.database import DEBIAN, postgres, programs
from evals.fake_github.state import Fault
from tests.agents.bot.conftest import SECRET, Bot, until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, settings: BotSettings, tmp_path: Path) -> Iterator[BotSettings]:
    """Settings with each of the two databases."""
    if request.param == "sqlite":
        yield settings.model_copy(update={"database_url": f"sqlite:///{tmp_path / 'jobs.sqlite'}"})
        return
    if programs() is None:
        pytest.skip(f"Postgres is not installed in {DEBIAN}")
    with postgres(Path(f"/tmp/torchtpu-pg-{os.getpid()}")) as url:
        yield settings.model_copy(update={"database_url": url})


def start(settings: BotSettings, home: Path, key: Path) -> subprocess.Popen[bytes]:
    """A worker as a process of its own."""
    env = {
        **os.environ, "TORCHTPU_HOME": str(home), "TORCHTPU_DATABASE_URL": settings.database_url,
        "TORCHTPU_GITHUB_APP_ID": "4242", "TORCHTPU_GITHUB_PRIVATE_KEY_FILE": str(key),
        "TORCHTPU_GITHUB_WEBHOOK_SECRET": SECRET, "TORCHTPU_GITHUB_API_URL": settings.api_url,
        "TORCHTPU_GITHUB_WEB_URL": settings.web_url, "TORCHTPU_GITHUB_DEVICE": "cpu",
        "TORCHTPU_GITHUB_POLL_SECONDS": "0.1", "TORCHTPU_GITHUB_LEASE_SECONDS": "5",
        "TORCHTPU_GITHUB_PROGRESS_SECONDS": "0.1",
    }  # fmt: skip
    return subprocess.Popen([sys.executable, "-m", "agents.cli", "worker"], cwd=ROOT, env=env)


def test_the_job_of_a_killed_worker_is_gone_on_with(
    bot: Bot, settings: BotSettings, tmp_path: Path, keys: tuple[str, str]
) -> None:
    key = tmp_path / "key.pem"
    key.write_text(keys[0])
    key.chmod(0o600)
    number = bot.state.open_issue(bot.repository)
    # Written, and never answered: the worker that wrote it waits, and is killed meanwhile.
    bot.state.faults.append(Fault("POST", "/check-runs", "timeout", after=True, seconds=30))
    first = start(settings, tmp_path / "home", key)
    try:
        bot.comment(number, "/torchtpu scan")
        until(lambda: bot.effects("check"))
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = start(settings, tmp_path / "home", key)
        try:
            until(lambda: any("SARIF" in text for text in bot.said(number)))
            time.sleep(1)  # whatever would be said twice
        finally:
            second.terminate()
            assert second.wait(30) == 0
    finally:
        if first.poll() is None:
            first.kill()
    assert len(bot.said(number)) == 1
    assert [len(bot.effects(kind)) for kind in ("check", "sarif", "reaction")] == [1, 1, 1]
    annotations = next(iter(bot.repository.checks.values()))["annotations"]
    assert len(annotations) == len({(one["path"], one["start_line"]) for one in annotations}) == 2


def test_postgres_is_there_where_ci_installs_it() -> None:
    if shutil.which("apt-get") and os.environ.get("CI"):
        assert programs() is not None, "CI installs Postgres, so that this room is tested on it"


def test_the_newest_postgres_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "DEBIAN", tmp_path)
    assert programs() is None
    for name in ("9.6/bin/initdb", "10/bin/initdb", "15/bin/initdb", "17/bin/psql"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    assert programs() == tmp_path / "15" / "bin"
