"""From a comment to a draft pull request with its evidence, over real HTTP and git."""

from __future__ import annotations

import subprocess

import pytest

from evals.fake_github.deliver import installation_event
from tests.agents.bot.conftest import Bot, until

pytestmark = pytest.mark.usefixtures("worker")


def test_from_installation_to_draft(bot: Bot) -> None:
    state, repository = bot.state, bot.repository
    assert bot.deliver(installation_event("created")).status_code == 202
    number = state.open_issue(repository, "Run on TPU")
    bot.comment(number, '/torchtpu migrate --entry "python hello.py" --no-verify\n\nplease')
    until(lambda: bot.effects("reaction"), 10)
    pull = until(lambda: list(repository.pulls.values()))[0]
    text = until(lambda: [said for said in bot.said(number) if "Draft pull request" in said])[0]
    assert f"#{pull['number']}" in text
    assert pull["draft"] and pull["base"]["ref"] == "main" and pull["head"]["ref"].startswith("torchtpu/migrate-")
    assert "## What was changed" in pull["body"] and "asked for by ann" in pull["body"].lower()
    log = ["git", "-C", str(repository.git), "log", "--format=%s", f"main..{pull['head']['ref']}"]
    assert subprocess.check_output(log, text=True).splitlines() == ["TPU104: move to device"]
    check = next(iter(repository.checks.values()))
    assert check["head_sha"] == repository.head(pull["head"]["ref"]) and check["conclusion"] == "neutral"
    assert len(bot.said(number)) == 1, "progress and result are one comment"
    assert bot.effects("edit"), "which was edited in place"
    assert [bot.effects(kind) for kind in ("pull", "push")] == [
        [f"team/project:{pull['head']['ref']}"],
        ["team/project"],
    ]
    assert repository.reactions[0]["content"] == "eyes"
