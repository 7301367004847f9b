"""What the fake GitHub knows: repositories, issues, comments, checks, and every write that took effect."""

from __future__ import annotations

import secrets
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ALL_PERMISSIONS = {
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "security_events": "write",
}


@dataclass
class Token:
    """An installation token."""

    text: str
    installation: int
    expires: float
    permissions: dict[str, str]


@dataclass
class Repository:
    """One repository; `git` is its bare repository on disk."""

    owner: str
    name: str
    git: Path
    default_branch: str = "main"
    collaborators: dict[str, str] = field(default_factory=dict)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)
    reactions: list[dict[str, Any]] = field(default_factory=list)
    checks: dict[int, dict[str, Any]] = field(default_factory=dict)
    sarifs: list[dict[str, Any]] = field(default_factory=list)
    code_scanning: bool = True
    drafts: bool = True

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner}/{self.name}"

    def head(self, branch: str) -> str | None:
        """The commit of a branch."""
        return self.commit(f"refs/heads/{branch}")

    def commit(self, name: str) -> str | None:
        """The commit that a name stands for."""
        done = subprocess.run(
            ["git", "-C", str(self.git), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.strip() or None

    def file(self, path: str, ref: str) -> bytes | None:
        """A file of a commit."""
        done = subprocess.run(
            ["git", "-C", str(self.git), "cat-file", "blob", f"{ref}:{path}"], capture_output=True, check=False
        )
        return done.stdout if done.returncode == 0 else None


@dataclass
class Fault:
    """What goes wrong with requests that match, so many times.

    Attributes:
        method: Of the request, or `*`.
        path: Text that its path holds.
        kind: `status`, `secondary`, `primary`, `timeout`, `reset` or `truncated`.
        times: How often.
        after: The request takes effect before it fails.
        status: Of the answer.
        seconds: To wait, for time-outs and limits.
        skip: Matching requests that pass first.
    """

    method: str
    path: str
    kind: str
    times: int = 1
    after: bool = False
    status: int = 502
    seconds: float = 1.0
    skip: int = 0


class State:
    """All of it, behind one lock.

    Args:
        folder: Holds the bare repositories.
        public_key: Of the app, to check its JWTs.
        app_id: Of the app.
        slug: Of the app.
    """

    def __init__(self, folder: Path, public_key: str, app_id: int = 4242, slug: str = "torchtpu-agent") -> None:
        self.lock = threading.RLock()
        self.folder = folder
        self.public_key = public_key
        self.app_id = app_id
        self.slug = slug
        self.page_size = 30
        self.token_seconds = 3600.0
        self.repositories: dict[str, Repository] = {}
        self.installations: dict[int, dict[str, str]] = {}
        self.tokens: dict[str, Token] = {}
        self.faults: list[Fault] = []
        self.effects: list[tuple[str, str]] = []
        self.requests: list[tuple[str, str, int]] = []
        self._last = 100

    def number(self) -> int:
        """A fresh id."""
        with self.lock:
            self._last += 1
            return self._last

    def install(self, installation: int = 77, permissions: dict[str, str] | None = None) -> int:
        """Install the app."""
        self.installations[installation] = dict(permissions or ALL_PERMISSIONS)
        return installation

    def add_repository(self, owner: str, name: str, files: dict[str, str], writers: tuple[str, ...] = ()) -> Repository:
        """A repository with one commit on `main`."""
        git = self.folder / owner / f"{name}.git"
        git.parent.mkdir(parents=True, exist_ok=True)
        _git(None, "init", "--quiet", "--bare", "--initial-branch=main", str(git))
        _git(git, "config", "http.receivepack", "true")
        repository = Repository(owner, name, git, collaborators=dict.fromkeys(writers, "write"))
        self.repositories[repository.full_name] = repository
        self.commit_files(repository, "main", files, "first")
        return repository

    def commit_files(
        self, repository: Repository, branch: str, files: dict[str, str], message: str, base: str | None = None
    ) -> str:
        """A commit on top of a branch, or of `base` for a new one; without a work tree."""
        parent = repository.head(branch) or (repository.commit(base) if base else None)
        index = {"GIT_INDEX_FILE": str(self.folder / f"index-{secrets.token_hex(4)}")}
        if parent:
            _git(repository.git, "read-tree", parent, env=index)
        for path, text in files.items():
            blob = _git(repository.git, "hash-object", "-w", "--stdin", stdin=text.encode())
            _git(repository.git, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", env=index)
        tree = _git(repository.git, "write-tree", env=index)
        parents = ["-p", parent] if parent else []
        commit = _git(repository.git, "commit-tree", tree, *parents, "-m", message)
        _git(repository.git, "update-ref", f"refs/heads/{branch}", commit)
        return commit

    def open_issue(self, repository: Repository, title: str = "An issue") -> int:
        """A new issue."""
        number = self.number()
        repository.issues[number] = {"number": number, "title": title, "state": "open"}
        return number

    def open_pull(self, repository: Repository, head: str, base: str = "main", fork: str = "", body: str = "") -> int:
        """A new pull request of a branch of the repository; as if from a fork where one is named."""
        number = self.number()
        sha = repository.head(head)
        assert sha is not None
        _git(repository.git, "update-ref", f"refs/pull/{number}/head", sha)
        owner = fork or repository.owner
        repository.pulls[number] = {
            "id": self.number(), "number": number, "state": "open", "draft": False, "title": head, "body": body,
            "html_url": f"http://fake/{repository.full_name}/pull/{number}",
            "user": {"login": owner, "type": "User"},
            "head": {"sha": sha, "ref": head, "label": f"{owner}:{head}", "repo": _repo(owner, repository.name)},
            "base": {
                "sha": repository.head(base), "ref": base, "label": f"{repository.owner}:{base}",
                "repo": _repo(repository.owner, repository.name),
            },
        }  # fmt: skip
        repository.issues[number] = {"number": number, "title": head, "state": "open", "pull_request": {"url": "x"}}
        return number

    def add_comment(
        self, repository: Repository, number: int, user: str, body: str, app: bool = False
    ) -> dict[str, Any]:
        """A comment in a thread."""
        comment = {
            "id": self.number(), "issue": number, "body": body, "created_at": now(), "updated_at": now(),
            "user": {"login": user, "type": "Bot" if app else "User"},
            "performed_via_github_app": {"id": self.app_id, "slug": self.slug} if app else None,
            "html_url": f"http://fake/{repository.full_name}/issues/{number}",
        }  # fmt: skip
        with self.lock:
            repository.comments[comment["id"]] = comment
        return comment

    def bot_comments(self, repository: Repository, number: int) -> list[dict[str, Any]]:
        """What our app said in a thread."""
        with self.lock:
            return [
                dict(comment)
                for comment in repository.comments.values()
                if comment["issue"] == number and comment["performed_via_github_app"]
            ]

    def new_token(self, installation: int) -> Token:
        """A token with the installation's permissions."""
        token = Token(
            f"ghs_{secrets.token_hex(20)}", installation, time.time() + self.token_seconds,
            dict(self.installations[installation]),
        )  # fmt: skip
        with self.lock:
            self.tokens[token.text] = token
        return token

    def fault_for(self, method: str, path: str) -> Fault | None:
        """The fault that a request meets, used up by it."""
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.method in ("*", method) and fault.path in path:
                    if fault.skip > 0:
                        fault.skip -= 1
                        return None
                    fault.times -= 1
                    return fault
        return None

    def effect(self, kind: str, what: str) -> None:
        """Note that a write took effect."""
        with self.lock:
            self.effects.append((kind, what))


def now() -> str:
    """The time as GitHub writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _repo(owner: str, name: str) -> dict[str, Any]:
    return {"name": name, "full_name": f"{owner}/{name}", "owner": {"login": owner, "type": "User"}}


_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A Person", "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person", "GIT_COMMITTER_EMAIL": "person@example.org",
}  # fmt: skip


def _git(git: Path | None, *args: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> str:
    command = ["git", *(["-C", str(git)] if git else []), *args]
    done = subprocess.run(command, env={**_ENV, **(env or {})}, input=stdin, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode().strip()
