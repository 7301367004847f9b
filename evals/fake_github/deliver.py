"""Makes deliveries as GitHub sends them, and sends them to a bot."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx

from agents.bot.signature import sign
from evals.fake_github.state import Repository, State

Event = tuple[str, dict[str, Any]]


def comment_event(
    state: State, repository: Repository, number: int, user: str, body: str, installation: int = 77
) -> Event:
    """A person writes a comment."""
    comment = state.add_comment(repository, number, user, body)
    return "issue_comment", {
        "action": "created",
        "issue": {**repository.issues[number], "user": {"login": user}},
        "comment": {key: value for key, value in comment.items() if key != "issue"},
        **_common(repository, user, installation),
    }


def pull_event(repository: Repository, number: int, user: str, action: str = "opened", installation: int = 77) -> Event:
    """A person opens a pull request or pushes to it."""
    return "pull_request", {
        "action": action,
        "number": number,
        "pull_request": repository.pulls[number],
        **_common(repository, user, installation),
    }


def push_event(repository: Repository, before: str, after: str, user: str, installation: int = 77) -> Event:
    """A person pushes to the default branch."""
    ref = f"refs/heads/{repository.default_branch}"
    common = _common(repository, user, installation)
    return "push", {"ref": ref, "before": before, "after": after, "deleted": False, **common}


def rerequest_event(repository: Repository, check: int, number: int, user: str, installation: int = 77) -> Event:
    """A person asks for a check once more."""
    pull = repository.pulls[number]
    sides = {side: {"sha": pull[side]["sha"], "ref": pull[side]["ref"]} for side in ("head", "base")}
    shown = {key: value for key, value in repository.checks[check].items() if key != "annotations"}
    return "check_run", {
        "action": "rerequested",
        "check_run": {**shown, "pull_requests": [{"number": number, **sides}]},
        **_common(repository, user, installation),
    }


def installation_event(action: str, installation: int = 77) -> Event:
    """The app is installed or removed."""
    sender = {"login": "owner", "type": "User"}
    return "installation", {"action": action, "installation": {"id": installation}, "sender": sender}


def _common(repository: Repository, user: str, installation: int) -> dict[str, Any]:
    return {
        "repository": {
            "name": repository.name, "full_name": repository.full_name, "owner": {"login": repository.owner},
            "default_branch": repository.default_branch, "clone_url": "http://elsewhere.invalid/x.git",
        },
        "installation": {"id": installation},
        "sender": {"login": user, "type": "User"},
    }  # fmt: skip


def headers_of(event: str, body: bytes, secret: str, delivery: str | None = None) -> dict[str, str]:
    """The headers of a delivery."""
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": delivery or str(uuid.uuid4()),
        "x-hub-signature-256": sign(secret, body),
        "user-agent": "GitHub-Hookshot/fake",
    }


def send(url: str, secret: str, event: Event, delivery: str | None = None) -> httpx.Response:
    """Deliver an event to a bot."""
    body = json.dumps(event[1]).encode()
    return httpx.post(
        f"{url}/github/webhook", content=body, headers=headers_of(event[0], body, secret, delivery), timeout=30
    )
