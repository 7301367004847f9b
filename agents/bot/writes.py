"""Writes to GitHub that happen once, however often they are asked for: each carries a mark, and is looked for first."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from agents.bot.events import MARK, marker
from agents.bot.github import Place
from agents.bot.retrying import Ambiguous, Refused, backoff

T = TypeVar("T")
MOST_TEXT = 60_000
"""Characters of a comment or a body; GitHub takes 65,536."""
PAGE = 50
"""Annotations that one request may carry."""
_ATTEMPTS = 30
Seen = dict[str, Any]


def once(place: Place, what: str, find: Callable[[], T | None], make: Callable[[], T]) -> T:
    """What is there, or what is made; a request that may have taken effect is looked for before it is sent again.

    Args:
        place: The repository.
        what: Names it among all that is written there.
        find: Looks for it.
        make: Makes it.

    Raises:
        Refused: GitHub does not let us, or cannot be reached.
    """
    with place.app.writing(f"{place.base} {what}"):
        for attempt in range(1, _ATTEMPTS + 1):
            found = find()
            if found is not None:
                return found
            try:
                return make()
            except Ambiguous:
                place.app.bell.wait(backoff(attempt))
    raise Refused(0, "it did not answer")


def react(place: Place, comment: int, content: str) -> None:
    """React to a comment; GitHub itself keeps a second reaction from being one."""
    place.send("POST", f"/issues/comments/{comment}/reactions", {"content": content}, repeatable=True)


def comment(place: Place, number: int, name: str, text: str) -> int:
    """The one comment of that name in a thread: made, or edited where it says something else. Returns its id."""
    body = _marked(text, name)

    def find() -> Seen | None:
        wanted = marker(name)
        for seen in place.pages(f"/issues/{number}/comments"):
            if wanted in (seen.get("body") or "") and _is_ours(place, seen):
                return seen
        return None

    def make() -> Seen:
        made: Seen = place.send("POST", f"/issues/{number}/comments", {"body": body})
        return made

    found = once(place, f"{number} {name}", find, make)
    if found["body"] != body:
        edit(place, found["id"], name, text)
    return int(found["id"])


def edit(place: Place, comment_id: int, name: str, text: str) -> None:
    """Edit a comment of ours."""
    place.send("PATCH", f"/issues/comments/{comment_id}", {"body": _marked(text, name)})


def _marked(text: str, name: str) -> str:
    return f"{fitting(text)}\n{marker(name)}"


def _is_ours(place: Place, seen: Seen) -> bool:
    """Whether our app wrote a comment; anybody can copy the mark."""
    app = seen.get("performed_via_github_app") or {}
    user = seen.get("user") or {}
    settings = place.app.settings
    return bool(app.get("id") == settings.app_id or user.get("login") == f"{settings.slug}[bot]")


def pull(place: Place, branch: str, base: str, title: str, name: str, text: str) -> Seen:
    """The draft pull request of a branch of ours."""
    body = {"title": title[:250], "head": branch, "base": base, "body": _marked(text, name)}

    def find() -> Seen | None:
        return next(iter(place.pages("/pulls", {"head": f"{place.owner}:{branch}", "state": "all"})), None)

    def make() -> Seen:
        try:
            made: Seen = place.send("POST", "/pulls", {**body, "draft": True})
        except Refused as error:
            # Private repositories of small plans have no drafts.
            if error.status != 422 or "raft" not in error.message:
                raise
            made = place.send("POST", "/pulls", {**body, "title": f"Draft: {body['title']}"})
        return made

    return once(place, branch, find, make)


def check(
    place: Place, sha: str, name: str, *, conclusion: str, title: str, summary: str, annotations: Sequence[Seen] = (),
    external: str = "",
) -> int:  # fmt: skip
    """The check run of that name on a commit, with its annotations page by page. Returns its id.

    Args:
        place: The repository.
        sha: The commit.
        name: What people see.
        conclusion: `success`, `failure` or `neutral`.
        title: One line.
        summary: Markdown.
        annotations: As the REST interface takes them.
        external: Tells jobs apart; with the same one there is one check run.
    """
    mark = f"{MARK}{external or name}"[:200]
    output = {"title": title[:250], "summary": fitting(summary)}

    def find() -> Seen | None:
        found = place.pages(f"/commits/{quote(sha)}/check-runs", {"check_name": name}, key="check_runs")
        ours = [seen for seen in found if (seen.get("app") or {}).get("id") == place.app.settings.app_id]
        return next((seen for seen in ours if seen.get("external_id") == mark), None)

    def make() -> Seen:
        first = {**output, "annotations": list(annotations[:PAGE])}
        body = {"name": name, "head_sha": sha, "external_id": mark, "status": "in_progress", "output": first}
        made: Seen = place.send("POST", "/check-runs", body)
        return made

    found = once(place, f"{sha} {name} {mark}", find, make)
    number = int(found["id"])
    _add_annotations(place, found, output, annotations)
    if found.get("conclusion") != conclusion:
        place.send("PATCH", f"/check-runs/{number}", {"status": "completed", "conclusion": conclusion})
    return number


def _add_annotations(place: Place, found: Seen, output: Seen, annotations: Sequence[Seen]) -> None:
    """Send the pages that are not there; each request adds to what is there, so a repeated one would double them."""
    path = f"/check-runs/{found['id']}"
    have = int(found["output"].get("annotations_count") or 0)
    while have < len(annotations):
        page = list(annotations[have : have + PAGE])
        try:
            place.send("PATCH", path, {"output": {**output, "annotations": page}}, repeatable=False)
            have += len(page)
        except Ambiguous:
            have = int(place.send("GET", path)["output"].get("annotations_count") or 0)


def sarif(place: Place, sha: str, ref: str, document: str, tool: str) -> str:
    """Upload SARIF for a commit once; what became of it, in words."""
    data = base64.b64encode(gzip.compress(document.encode(), mtime=0)).decode()

    def find() -> str | None:
        known = place.pages("/code-scanning/analyses", {"ref": ref, "tool_name": tool})
        try:
            return "uploaded" if any(seen.get("commit_sha") == sha for seen in known) else None
        except Refused as error:
            if error.status == 404:  # nothing was ever uploaded
                return None
            raise

    def make() -> str:
        place.send("POST", "/code-scanning/sarifs", {"commit_sha": sha, "ref": ref, "sarif": data})
        return "uploaded"

    try:
        return once(place, f"{sha} {ref} {tool}", find, make)
    except Refused as error:
        return f"not uploaded: {error.message or error}"


def fitting(text: str) -> str:
    """A text that is no longer than GitHub takes."""
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rsplit("\n", 1)[0] + "\n\n(cut off: it is too long)"
