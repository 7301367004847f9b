"""The part of GitHub's REST interface that the bot uses, each route with the permission it needs."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evals.fake_github.state import Repository, State, now

MOST_ANNOTATIONS = 50
MOST_TEXT = 65536


class Refusal(Exception):
    """An answer with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass
class Asked:
    """One request to a repository."""

    state: State
    repository: Repository
    body: dict[str, Any]
    query: Mapping[str, str]
    words: tuple[str, ...]

    def text(self, name: str) -> str:
        """A text of the body, no longer than GitHub takes."""
        value = self.body.get(name)
        if not isinstance(value, str) or not value or len(value) > MOST_TEXT:
            raise Refusal(422, f"{name} is missing or too long")
        return value

    @property
    def number(self) -> int:
        """The first number of the path."""
        return int(self.words[0])


Handler = Callable[[Asked], tuple[int, Any]]
ROUTES: list[tuple[str, re.Pattern[str], str, str, Handler]] = []


def route(method: str, path: str, permission: str, level: str = "read") -> Callable[[Handler], Handler]:
    """Register a route below `/repos/{owner}/{name}`; `{}` in its path is one segment, `{*}` the rest."""
    pattern = re.escape(path).replace(r"\{\}", "([^/]+)").replace(r"\{\*\}", "(.+)")

    def keep(handler: Handler) -> Handler:
        ROUTES.append((method, re.compile(pattern), permission, level, handler))
        return handler

    return keep


@route("GET", "", "metadata")
def _repository(asked: Asked) -> tuple[int, Any]:
    repository = asked.repository
    return 200, {
        "name": repository.name, "full_name": repository.full_name, "default_branch": repository.default_branch,
        "owner": {"login": repository.owner}, "private": True, "fork": False,
    }  # fmt: skip


@route("GET", "/collaborators/{}/permission", "metadata")
def _permission(asked: Asked) -> tuple[int, Any]:
    login = asked.words[0]
    level = asked.repository.collaborators.get(login, "none")
    return 200, {"permission": level, "role_name": level, "user": {"login": login}}


@route("GET", "/contents/{*}", "contents")
def _contents(asked: Asked) -> tuple[int, Any]:
    data = asked.repository.file(asked.words[0], asked.query.get("ref", asked.repository.default_branch))
    if data is None:
        raise Refusal(404, "Not Found")
    return 200, {
        "type": "file", "encoding": "base64", "size": len(data), "path": asked.words[0],
        "content": base64.encodebytes(data).decode(),
    }  # fmt: skip


@route("GET", "/issues/{}/comments", "issues")
def _comments(asked: Asked) -> tuple[int, Any]:
    since = asked.query.get("since", "")
    kept = [c for c in asked.repository.comments.values() if c["issue"] == asked.number and c["updated_at"] >= since]
    return 200, kept


@route("POST", "/issues/{}/comments", "issues", "write")
def _new_comment(asked: Asked) -> tuple[int, Any]:
    if asked.number not in asked.repository.issues:
        raise Refusal(404, "Not Found")
    state = asked.state
    made = state.add_comment(asked.repository, asked.number, f"{state.slug}[bot]", asked.text("body"), app=True)
    state.effect("comment", f"{asked.repository.full_name}#{asked.number}")
    return 201, made


@route("PATCH", "/issues/comments/{}", "issues", "write")
def _edit_comment(asked: Asked) -> tuple[int, Any]:
    comment = asked.repository.comments.get(asked.number)
    if comment is None:
        raise Refusal(404, "Not Found")
    if not comment["performed_via_github_app"]:
        raise Refusal(403, "Resource not accessible by integration")
    comment.update(body=asked.text("body"), updated_at=now())
    asked.state.effect("edit", str(asked.number))
    return 200, comment


@route("POST", "/issues/comments/{}/reactions", "issues", "write")
def _react(asked: Asked) -> tuple[int, Any]:
    if asked.number not in asked.repository.comments:
        raise Refusal(404, "Not Found")
    key = {"comment": asked.number, "content": asked.text("content"), "user": asked.state.slug}
    if key in asked.repository.reactions:
        return 200, {"id": 1, **key}
    asked.repository.reactions.append(key)
    asked.state.effect("reaction", f"{asked.number}:{key['content']}")
    return 201, {"id": 1, **key}


@route("GET", "/pulls", "pull_requests")
def _pulls(asked: Asked) -> tuple[int, Any]:
    head, state = asked.query.get("head", ""), asked.query.get("state", "open")
    kept = [p for p in asked.repository.pulls.values() if not head or p["head"]["label"] == head]
    return 200, [p for p in kept if state == "all" or p["state"] == state]


@route("GET", "/pulls/{}", "pull_requests")
def _pull(asked: Asked) -> tuple[int, Any]:
    if asked.number not in asked.repository.pulls:
        raise Refusal(404, "Not Found")
    return 200, asked.repository.pulls[asked.number]


@route("POST", "/pulls", "pull_requests", "write")
def _new_pull(asked: Asked) -> tuple[int, Any]:
    repository = asked.repository
    head, base = asked.text("head"), asked.text("base")
    if repository.head(head) is None or repository.head(base) is None:
        raise Refusal(422, "Validation Failed: head or base is invalid")
    label = f"{repository.owner}:{head}"
    if any(p["head"]["label"] == label and p["state"] == "open" for p in repository.pulls.values()):
        raise Refusal(422, f"A pull request already exists for {label}.")
    if asked.body.get("draft") and not repository.drafts:
        raise Refusal(422, "Draft pull requests are not supported in this repository.")
    number = asked.state.open_pull(repository, head, base, body=asked.text("body"))
    pull = repository.pulls[number]
    pull.update(draft=bool(asked.body.get("draft")), title=asked.text("title"))
    pull["user"] = {"login": f"{asked.state.slug}[bot]", "type": "Bot"}
    asked.state.effect("pull", f"{repository.full_name}:{head}")
    return 201, pull


@route("GET", "/commits/{}/check-runs", "checks")
def _checks(asked: Asked) -> tuple[int, Any]:
    name = asked.query.get("check_name", "")
    kept = [c for c in asked.repository.checks.values() if c["head_sha"] == asked.words[0]]
    return 200, {"total_count": len(kept), "check_runs": [_shown(c) for c in kept if not name or c["name"] == name]}


@route("GET", "/check-runs/{}", "checks")
def _check(asked: Asked) -> tuple[int, Any]:
    if asked.number not in asked.repository.checks:
        raise Refusal(404, "Not Found")
    return 200, _shown(asked.repository.checks[asked.number])


@route("POST", "/check-runs", "checks", "write")
def _new_check(asked: Asked) -> tuple[int, Any]:
    sha = asked.text("head_sha")
    if asked.repository.commit(sha) is None:
        raise Refusal(422, f"No commit found for SHA: {sha}")
    check: dict[str, Any] = {
        "id": asked.state.number(), "name": asked.text("name"), "head_sha": sha, "status": "queued",
        "conclusion": None, "external_id": "", "app": {"id": asked.state.app_id, "slug": asked.state.slug},
        "output": {"title": None, "summary": None}, "annotations": [],
    }  # fmt: skip
    _update(check, asked)
    with asked.state.lock:
        asked.repository.checks[check["id"]] = check
    asked.state.effect("check", f"{asked.repository.full_name}@{sha}:{check['name']}")
    return 201, _shown(check)


@route("PATCH", "/check-runs/{}", "checks", "write")
def _edit_check(asked: Asked) -> tuple[int, Any]:
    if asked.number not in asked.repository.checks:
        raise Refusal(404, "Not Found")
    check = asked.repository.checks[asked.number]
    _update(check, asked)
    return 200, _shown(check)


def _update(check: dict[str, Any], asked: Asked) -> None:
    body = asked.body
    output = body.get("output") or {}
    annotations = output.get("annotations") or []
    if len(annotations) > MOST_ANNOTATIONS:
        raise Refusal(422, f"No more than {MOST_ANNOTATIONS} annotations a request")
    if output and not (output.get("title") and output.get("summary")):
        raise Refusal(422, "output needs a title and a summary")
    if any(len(str(output.get(name) or "")) > MOST_TEXT for name in ("summary", "text")):
        raise Refusal(422, "output is too long")
    for one in annotations:
        if not {"path", "start_line", "end_line", "annotation_level", "message"} <= set(one):
            raise Refusal(422, "An annotation lacks a field")
    for name in ("status", "conclusion", "external_id", "details_url", "actions"):
        if name in body:
            check[name] = body[name]
    if check["conclusion"]:
        check["status"] = "completed"
    check["output"].update({k: v for k, v in output.items() if k != "annotations"})
    check["annotations"].extend(annotations)


def _shown(check: dict[str, Any]) -> dict[str, Any]:
    output = {**check["output"], "annotations_count": len(check["annotations"])}
    return {**{k: v for k, v in check.items() if k != "annotations"}, "output": output}


@route("POST", "/code-scanning/sarifs", "security_events", "write")
def _new_sarif(asked: Asked) -> tuple[int, Any]:
    if not asked.repository.code_scanning:
        raise Refusal(403, "Code scanning is not enabled for this repository.")
    sarif = json.loads(gzip.decompress(base64.b64decode(asked.text("sarif"))))
    if sarif.get("version") != "2.1.0":
        raise Refusal(422, "not SARIF 2.1.0")
    runs = sarif["runs"]
    kept = {
        "commit_sha": asked.text("commit_sha"), "ref": asked.text("ref"), "tool": runs[0]["tool"]["driver"]["name"],
        "results": len(runs[0]["results"]), "id": asked.state.number(),
    }  # fmt: skip
    asked.repository.sarifs.append(kept)
    asked.state.effect("sarif", f"{asked.repository.full_name}@{kept['commit_sha']}")
    return 202, {"id": str(kept["id"]), "url": "http://fake/sarif"}


@route("GET", "/code-scanning/analyses", "security_events")
def _analyses(asked: Asked) -> tuple[int, Any]:
    if not asked.repository.code_scanning:
        raise Refusal(403, "Code scanning is not enabled for this repository.")
    wanted = {name: asked.query.get(name, "") for name in ("ref",)}
    kept = [s for s in asked.repository.sarifs if all(not v or s[k] == v for k, v in wanted.items())]
    return 200, [{**s, "tool": {"name": s["tool"]}} for s in kept]


def installation_token(state: State, installation: int) -> tuple[int, Any]:
    """The answer to a request for a token."""
    if installation not in state.installations:
        raise Refusal(404, "Not Found")
    token = state.new_token(installation)
    state.effect("token", str(installation))
    expires = datetime.fromtimestamp(token.expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return 201, {"token": token.text, "expires_at": expires, "permissions": token.permissions}


def may(state: State, authorization: str, permission: str, level: str) -> None:
    """Check an installation token.

    Raises:
        Refusal: It is none of ours, has expired, or lacks the permission.
    """
    kind, _, text = authorization.partition(" ")
    token = state.tokens.get(text) if kind.lower() in ("token", "bearer") else None
    if token is None or token.expires < time.time() or token.installation not in state.installations:
        raise Refusal(401, "Bad credentials")
    have = token.permissions.get(permission)
    if have is None or (level == "write" and have != "write"):
        raise Refusal(403, "Resource not accessible by integration")
