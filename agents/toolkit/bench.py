"""Where tools work: a private tree with the facts about it, kept in its folder after every change."""

from __future__ import annotations

import os
from pathlib import Path

from agents.context import Context
from agents.runs import write_whole
from agents.state import RunRecord, State
from tools import git
from tools.errors import UserError
from tools.refusals import bad_path, refuse

_CALL = "Call: "


class Bench:
    """A private tree, what was run in it and how it stands.

    Args:
        state: As in the migrate graph: source, settings, entries, runs, commits.
        context: The folder, and where progress is told.
        only_entries: Only commands the user gave may be run, since nothing keeps others from the machine.
        runs: What files of runs begin with.
    """

    def __init__(self, state: State, context: Context, *, only_entries: bool = False, runs: str = "run") -> None:
        self.runs = runs
        self.state = state
        self.context = context
        self.only_entries = only_entries
        self.call_id = ""

    @property
    def tree(self) -> Path:
        """Top of the private repository."""
        return self.context.folder.tree

    @property
    def root(self) -> Path:
        """The part of it that is worked on."""
        return self.context.root(self.state)

    @property
    def base(self) -> str:
        """The commit everything started from."""
        return self.state.origin.base

    def tip(self) -> str:
        """The newest commit."""
        return os.fsdecode(git.run_git(self.tree, "rev-parse", "HEAD", private=True)).strip()

    def path(self, name: str) -> Path:
        """A path inside the worked-on part.

        Raises:
            UserError: It leads out of it, or through a link.
        """
        name = name.removeprefix("./")
        if problem := bad_path(name):
            raise UserError(f"{problem}; only files of the tree can be reached.", "Give a path relative to its top.")
        path = self.root / name
        if not path.resolve().is_relative_to(self.root.resolve()) or path.is_symlink():
            raise UserError(f"{name} leads out of the tree through a link.", "Only files of the tree can be reached.")
        return path

    def commit(self, changed: dict[str, str | None], title: str, body: str = "", *, guarded: bool = True) -> str:
        """Write whole files and commit them, or change nothing at all.

        Args:
            changed: New text by path, relative to the worked-on part.
            title: First line of the commit's message.
            body: The rest of it.
            guarded: Whether the change is held to `tools.refusals`.

        Raises:
            UserError: It is refused.
        """
        before = {name: read_text(self.path(name)) for name in changed}
        if guarded and (reasons := refuse(before, changed)):
            raise UserError(f"Refused: {'; '.join(reasons)}.", "Change the cause of the failure instead.")
        for name, text in changed.items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((text or "").encode())
        scope = f"{self.state.origin.scope}/" if self.state.origin.scope else ""
        return self.record([f"{scope}{name}" for name in changed], title, body)

    def record(self, files: list[str], title: str, body: str = "", rule: str = "", findings: int = 0) -> str:
        """Commit files as they are on disk; the commit names the call that made it."""
        call = f"\n{_CALL}{self.call_id}\n" if self.call_id else ""
        message = f"{title[:100]}\n\n{body}\n\nMade by torchtpu-agent.\n{call}"
        sha = git.commit_files(self.tree, files, message, self.state.request.created)
        made = git.Commit(sha=sha, rule=rule or "agent", title=title, files=files, findings=findings)
        self.update(commits=[*self.state.commits, made])
        return sha

    def done_before(self) -> bool:
        """Whether the call that is being made was made already, by a process that was killed before it could say so."""
        if not self.call_id:
            return False
        said = git.run_git(self.tree, "log", "-1", "--format=%B", private=True).decode("utf-8", "replace")
        return f"{_CALL}{self.call_id}" in said.splitlines()

    def undo(self) -> str | None:
        """Take the newest commit back; its title, or None where there is nothing of ours to take back."""
        if self.tip() == self.base:
            return None
        title = git.run_git(self.tree, "log", "-1", "--format=%s", private=True).decode("utf-8", "replace").strip()
        git.run_git(self.tree, "reset", "--quiet", "--hard", "HEAD~1", private=True)
        self.update(commits=self.state.commits[:-1])
        return title

    def clean(self) -> None:
        """Bring files back to the newest commit: what a killed process left half-written."""
        for lock in (self.tree / ".git").rglob("*.lock"):
            lock.unlink()
        git.run_git(self.tree, "reset", "--quiet", "--hard", "HEAD", private=True)
        git.run_git(self.tree, "clean", "--quiet", "-ffdx", private=True)

    def diff(self) -> str:
        """Everything that was changed since the beginning."""
        return git.make_patch(self.tree, self.base, self.tip()).decode("utf-8", "replace")

    @property
    def last_run(self) -> RunRecord | None:
        """The newest run."""
        return self.state.runs[-1] if self.state.runs else None

    def mark_run(self) -> None:
        """Remember which commit was run."""
        write_whole(self.context.folder.path / "run-tip", self.tip())

    def is_run_at_tip(self) -> bool:
        """Whether the last run was of the tree as it is now."""
        path = self.context.folder.path / "run-tip"
        return path.is_file() and path.read_text() == self.tip()

    def update(self, **changes: object) -> None:
        """Change what is known, and keep it."""
        self.state = self.state.model_copy(update=changes)
        write_whole(self.context.folder.path / "bench.json", self.state.model_dump_json(indent=1))


def read_text(path: Path) -> str | None:
    """A file's text as it is, None where there is none.

    Raises:
        UserError: It is no text.
    """
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise UserError(f"{path.name} is no text file.") from error
