"""From a delivery of GitHub to a job; most deliveries ask for nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from agents.bot.commands import CommandError, parse
from agents.bot.jobs import Job
from agents.bot.names import Branch, Login, Owner, Repository, Sha

MARK = "torchtpu-agent:"
"""Every text of ours holds it in a hidden comment."""


class BadEvent(Exception):
    """A delivery that is signed and yet not what GitHub sends."""


class _Account(BaseModel):
    login: Login
    type: str = "User"


class _OwnerAccount(BaseModel):
    login: Owner


class _Repository(BaseModel):
    name: Repository
    owner: _OwnerAccount
    default_branch: Branch = "main"


class _Installation(BaseModel):
    id: int = Field(gt=0)


class _Comment(BaseModel):
    id: int = Field(gt=0)
    body: str = ""
    user: _Account
    performed_via_github_app: dict[str, Any] | None = None


class _Issue(BaseModel):
    number: int = Field(gt=0)
    pull_request: dict[str, Any] | None = None


class _Side(BaseModel):
    sha: Sha
    ref: Branch
    repo: _Repository | None = None


class _Pull(BaseModel):
    number: int = Field(gt=0)
    head: _Side
    base: _Side
    body: str | None = None


class _Commit(BaseModel):
    sha: Sha


class _PullOfCheck(BaseModel):
    number: int = Field(gt=0)
    head: _Commit
    base: _Commit


class _Check(BaseModel):
    head_sha: Sha
    external_id: str | None = None
    pull_requests: list[_PullOfCheck] = []


class _Any(BaseModel):
    action: str = ""
    installation: _Installation | None = None
    sender: _Account | None = None


class _Delivered(BaseModel):
    repository: _Repository
    installation: _Installation
    sender: _Account


class _IssueComment(_Delivered):
    issue: _Issue
    comment: _Comment


class _PullRequest(_Delivered):
    pull_request: _Pull


class _CheckRun(_Delivered):
    check_run: _Check


class _Push(_Delivered):
    ref: str
    after: Sha
    before: Sha
    deleted: bool = False


def job_of(event: str, delivery: str, payload: Mapping[str, Any], slug: str) -> Job | None:
    """The job of a delivery, or None where there is nothing to do.

    Args:
        event: Value of X-GitHub-Event.
        delivery: Value of X-GitHub-Delivery.
        payload: The body.
        slug: Name of our app.

    Raises:
        BadEvent: A field is missing, or a name in it is none.
    """
    reader = _READERS.get((event, str(payload.get("action", ""))))
    if reader is None:
        return None
    try:
        return reader(delivery, payload, slug)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadEvent(f"{event}: {where}: {first['msg']}") from error


def _comment(delivery: str, payload: Mapping[str, Any], slug: str) -> Job | None:
    seen = _IssueComment.model_validate(payload)
    comment = seen.comment
    by_app = comment.performed_via_github_app is not None
    if by_app or _is_bot(comment.user, slug) or _is_bot(seen.sender, slug) or f"<!-- {MARK}" in comment.body:
        return None
    common = {**_common(delivery, seen), "number": seen.issue.number, "comment": comment.id}
    common["is_pull"] = seen.issue.pull_request is not None
    try:
        command = parse(comment.body)
    except CommandError as error:
        return Job(kind="mistake", said=str(error), **common)
    return Job(kind="command", command=command, **common) if command else None


def _pull(delivery: str, payload: Mapping[str, Any], slug: str) -> Job | None:
    seen = _PullRequest.model_validate(payload)
    pull = seen.pull_request
    if f"<!-- {MARK}" in (pull.body or "") and _is_bot(seen.sender, slug):
        return None  # our own draft: its check comes with it
    head = pull.head.repo
    same = head is not None and (head.owner.login, head.name) == (seen.repository.owner.login, seen.repository.name)
    return Job(
        kind="change", number=pull.number, is_pull=True, sha=pull.head.sha, base=pull.base.sha, fork=not same,
        **_common(delivery, seen),
    )  # fmt: skip


def _push(delivery: str, payload: Mapping[str, Any], slug: str) -> Job | None:
    seen = _Push.model_validate(payload)
    is_default = seen.ref == f"refs/heads/{seen.repository.default_branch}"
    if seen.deleted or not is_default or _is_bot(seen.sender, slug) or not seen.after.strip("0"):
        return None
    base = seen.before if seen.before.strip("0") else None
    return Job(kind="push", sha=seen.after, base=base, branch=seen.repository.default_branch, **_common(delivery, seen))


def _rerequested(delivery: str, payload: Mapping[str, Any], _slug: str) -> Job | None:
    seen = _CheckRun.model_validate(payload)
    if not (seen.check_run.external_id or "").startswith(MARK):
        return None
    pulls = seen.check_run.pull_requests
    common = {**_common(delivery, seen), "sha": seen.check_run.head_sha, "again": True}
    if not pulls:
        return Job(kind="push", branch=seen.repository.default_branch, **common)
    return Job(kind="change", number=pulls[0].number, is_pull=True, base=pulls[0].base.sha, **common)


def _installed(delivery: str, payload: Mapping[str, Any], _slug: str) -> Job | None:
    seen = _Any.model_validate(payload)
    gone = seen.action in {"deleted", "suspend"}
    if seen.installation is None:
        raise BadEvent("installation: there is no id")
    return Job(id=delivery, kind="removed" if gone else "installed", installation=seen.installation.id)


def _common(delivery: str, seen: _Delivered) -> dict[str, Any]:
    return {
        "id": delivery,
        "installation": seen.installation.id,
        "owner": seen.repository.owner.login,
        "repository": seen.repository.name,
        "sender": seen.sender.login,
    }


def _is_bot(account: _Account, slug: str) -> bool:
    return account.type == "Bot" or account.login.endswith("[bot]") or account.login == slug


_Reader = Callable[[str, Mapping[str, Any], str], Job | None]
_READERS: dict[tuple[str, str], _Reader] = {
    ("issue_comment", "created"): _comment,
    **{("pull_request", action): _pull for action in ("opened", "reopened", "synchronize", "ready_for_review")},
    ("push", ""): _push,
    ("check_run", "rerequested"): _rerequested,
    **{("installation", action): _installed for action in ("created", "deleted", "suspend", "unsuspend")},
}


def marker(name: str) -> str:
    """The hidden comment that says what a text of ours is."""
    return f"<!-- {MARK}{re.sub(r'[^A-Za-z0-9:._-]', '_', name)} -->"
