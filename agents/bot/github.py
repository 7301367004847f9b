"""Talks to GitHub as the app's installation: tokens, requests that outlast faults, pages."""

from __future__ import annotations

import base64
import logging
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from githubkit import AppAuthStrategy, GitHub, Response
from githubkit.cache import MemCacheStrategy
from githubkit.exception import GitHubException

from agents.bot.closing import Bell
from agents.bot.retrying import Ambiguous, Refused, as_refused, backoff, judge
from agents.bot.settings import BotSettings

_LOG = logging.getLogger("torchtpu.bot")
_MOST_PAGES = 100
_MARGIN = 60.0


class App:
    """The GitHub app.

    Args:
        settings: Its id, key and addresses.
        bell: Ends waiting when the worker ends.
    """

    def __init__(self, settings: BotSettings, bell: Bell) -> None:
        self.settings = settings
        self.bell = bell
        # One for all clients: to make it takes longer than a request.
        self._ssl = ssl.create_default_context()
        self._cache = MemCacheStrategy()
        self._tokens: dict[int, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._writing = [threading.Lock() for _ in range(64)]

    def writing(self, what: str) -> threading.Lock:
        """Held while something is looked for and made, so that two jobs of this worker do not both find nothing."""
        return self._writing[hash(what) % len(self._writing)]

    def place(self, installation: int, owner: str, name: str) -> Place:
        """A repository, as an installation sees it."""
        return Place(self, installation, owner, name)

    def token(self, installation: int) -> str:
        """A token with the rights of an installation, kept until shortly before it expires.

        githubkit can do this too, by its models of all of GitHub's answers, whose import takes seconds.
        """
        with self._lock:
            text, expires = self._tokens.get(installation, ("", 0.0))
        if expires - _MARGIN > time.time():
            return text
        answer = self._new_token(installation, None)
        expires = datetime.fromisoformat(answer["expires_at"]).timestamp()
        with self._lock:
            self._tokens[installation] = (str(answer["token"]), expires)
        return str(answer["token"])

    def forget_tokens(self) -> None:
        """Get fresh tokens: one was refused before its time."""
        with self._lock:
            self._cache = MemCacheStrategy()
            self._tokens.clear()

    def git_token(self, installation: int, name: str) -> str:
        """A token for git that opens one repository and nothing but its contents."""
        wanted = {"repositories": [name], "permissions": {"contents": "write"}}
        return str(self._new_token(installation, wanted)["token"])

    def _new_token(self, installation: int, wanted: dict[str, Any] | None) -> dict[str, Any]:
        key = self.settings.private_key.get_secret_value()
        path = f"app/installations/{installation}/access_tokens"
        with self.client(AppAuthStrategy(self.settings.app_id, key)) as client:
            answer = _Outlasting(self, lambda: client).send("POST", path, wanted, repeatable=True)
        found: dict[str, Any] = answer.json()
        return found

    def client(self, auth: Any) -> GitHub[Any]:
        """A client for a token or another way to sign in."""
        with self._lock:
            cache = self._cache
        return GitHub(
            auth, base_url=self.settings.api_url, ssl_verify=self._ssl, cache_strategy=cache, auto_retry=False,
            timeout=self.settings.request_seconds, user_agent="torchtpu-agent",
        )  # fmt: skip


class _Outlasting:
    """Sends one request until it is answered.

    Args:
        app: Its patience and its bell.
        client: Gives the client.
    """

    def __init__(self, app: App, client: Any) -> None:
        self._app = app
        self._client = client
        self._renewed = False

    def send(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
    ) -> Response[Any]:  # fmt: skip
        """Send a request; what it raises is described at `Place.send`."""
        again = method in {"GET", "PATCH", "PUT", "DELETE"} if repeatable is None else repeatable
        deadline = time.monotonic() + 60 * self._app.settings.outage_minutes
        for attempt in range(1, 10_000):
            try:
                answer: Response[Any] = self._client().request(method, path, json=body, params=params)
                answer.json()  # one that was cut off is no answer
            except (GitHubException, ValueError) as error:
                self._wait(error, again, attempt, deadline, f"{method} {path}")
            else:
                return answer
        raise AssertionError("the deadline ends this")

    def _wait(self, error: Exception, again: bool, attempt: int, deadline: float, what: str) -> None:
        if not isinstance(error, GitHubException):
            if not again:
                raise Ambiguous(what) from error
            self._app.bell.wait(backoff(attempt))
            return
        refused = as_refused(error)
        if refused is not None and refused.status == 401 and not self._renewed:
            self._renewed = True
            self._app.forget_tokens()
            return
        verdict = judge(error, again, attempt)
        if verdict.act == "give up" and refused is not None:
            raise refused from error
        if verdict.act == "look":
            self._app.bell.wait(verdict.seconds)
            raise Ambiguous(what) from error
        if time.monotonic() + verdict.seconds > deadline:
            raise refused or Refused(0, f"it could not be reached: {type(error).__name__}") from error
        _LOG.info("%s: %s; again in %.1f s", what, type(error).__name__, verdict.seconds)
        self._app.bell.wait(verdict.seconds)


class Place:
    """One repository through one installation.

    Args:
        app: The app.
        installation: Its installation.
        owner: Owner of the repository.
        name: Name of the repository.
    """

    def __init__(self, app: App, installation: int, owner: str, name: str) -> None:
        self.app = app
        self.installation = installation
        self.owner = owner
        self.name = name
        self.base = f"repos/{owner}/{name}"
        self._open: GitHub[Any] | None = None
        self._token = ""

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def send(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
    ) -> Any:  # fmt: skip
        """Send a request below the repository, and wait out rate limits and outages.

        Args:
            method: HTTP method.
            path: Begins with a slash, or is empty.
            body: Of the request.
            params: Of its query.
            repeatable: Whether it may be sent twice; all but POST are, if nothing is said.

        Raises:
            Refused: GitHub's answer is final.
            Ambiguous: A request that must not be sent twice may have taken effect.
        """
        return _Outlasting(self.app, self._client).send(method, self.base + path, body, params, repeatable).json()

    def pages(self, path: str, params: Mapping[str, Any] | None = None, key: str = "") -> Iterator[dict[str, Any]]:
        """All items of a list, page by page, as far as GitHub's links lead."""
        query: dict[str, Any] = {"per_page": 100, **(params or {})}
        for page in range(1, _MOST_PAGES + 1):
            answer = _Outlasting(self.app, self._client).send("GET", self.base + path, params={**query, "page": page})
            found = answer.json()
            yield from (found[key] if key else found)
            if 'rel="next"' not in answer.headers.get("link", ""):
                return

    def file(self, path: str, ref: str | None = None) -> bytes | None:
        """A small file of a commit, of the default branch if none is named; None where there is none."""
        try:
            found = self.send("GET", f"/contents/{quote(path)}", params={"ref": ref} if ref else None)
        except Refused as error:
            if error.status == 404:
                return None
            raise
        if not isinstance(found, dict) or found.get("encoding") != "base64":
            return None
        return base64.b64decode(found.get("content", ""))

    def _client(self) -> GitHub[Any]:
        token = self.app.token(self.installation)
        if self._open is not None and self._token == token:
            return self._open
        self._drop()
        self._open, self._token = self.app.client(token), token
        self._open.__enter__()  # the package has no types there
        return self._open

    def _drop(self) -> None:
        if self._open is not None:
            self._open.__exit__()
            self._open = None
