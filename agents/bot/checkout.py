"""Gets commits of a repository over HTTP, and pushes a branch, without a secret in arguments, files or logs."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

from agents.bot.github import Place
from agents.bot.retrying import backoff
from agents.runs import remove_tree
from tools.git import GitError, run_git

_ATTEMPTS = 6
_SECONDS = 900.0


class CheckoutError(Exception):
    """Git could not do it; the text holds no secret."""


class Checkout:
    """Folders with commits of one repository.

    Args:
        place: The repository.
        folder: Where they go.
    """

    def __init__(self, place: Place, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self.url = f"{place.app.settings.clone_url}/{place.owner}/{place.name}.git"

    def take(self, commit: str, name: str, branch: str | None = None) -> Path:
        """A work tree of a commit, by its id or by a branch's name.

        Args:
            commit: Id of the commit, or `refs/heads/...`.
            name: Of the folder.
            branch: What to call the branch that is checked out; none is if it is empty.

        Raises:
            CheckoutError: It cannot be fetched.
        """
        into = self._folder / name
        remove_tree(into)
        into.mkdir(parents=True, mode=0o700)
        run_git(into, "init", "--quiet", private=True)
        self._over_http(into, "fetch", "--quiet", "--no-tags", "--depth=1", "--", self.url, commit)
        if branch:
            run_git(into, "checkout", "--quiet", "-B", branch, "FETCH_HEAD", private=True)
        else:
            run_git(into, "checkout", "--quiet", "--detach", "FETCH_HEAD", private=True)
        return into

    def push(self, tree: Path, commit: str, branch: str) -> None:
        """Push a commit as a branch of ours; one that is there already is that of an earlier attempt.

        Raises:
            CheckoutError: It is refused.
        """
        self._over_http(tree, "push", "--quiet", "--force", "--", self.url, f"{commit}:refs/heads/{branch}")

    def add(self, tree: Path, commit: str, branch: str) -> None:
        """Push a commit on top of a branch of somebody else, if it still is where we found it.

        Raises:
            CheckoutError: It has moved, or may not be pushed to.
        """
        self._over_http(tree, "push", "--quiet", "--", self.url, f"{commit}:refs/heads/{branch}")

    def _over_http(self, tree: Path, *arguments: str) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                run_git(tree, *arguments, private=True, env=self._secret(), timeout=_SECONDS)
            except (GitError, subprocess.TimeoutExpired) as error:
                said = error.stderr if isinstance(error, GitError) else "it took too long"
                if attempt == _ATTEMPTS or not _may_pass(str(said)):
                    raise CheckoutError(f"git {arguments[0]} failed: {_plain(str(said))}") from None
                self._place.app.bell.wait(backoff(attempt))
            else:
                return

    def _secret(self) -> dict[str, str]:
        """A header for this address alone, in the environment of the one child that needs it."""
        app = self._place.app
        token = app.git_token(self._place.installation, self._place.name)
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{app.settings.clone_url}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
            "GIT_ALLOW_PROTOCOL": "https:http",
            "GIT_TRACE": "0",
            "GIT_TRACE_CURL": "0",
        }


def _may_pass(said: str) -> bool:
    """Whether a failure of git may be gone next time."""
    final = ("not our ref", "couldn't find remote ref", "[rejected]", "error: 403", "error: 404", "not found", "denied")
    return not any(words in said for words in final)


def _plain(said: str) -> str:
    return " ".join(said.split())[:500]
