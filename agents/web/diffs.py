"""Takes a commit's patch apart into files, hunks and numbered lines, for a page."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel

from tools import git

MOST_LINES = 3000
"""Lines of one commit that a page shows; the command for the whole stands beside it."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_KINDS = {"+": "added", "-": "removed", " ": "same", "\\": "note"}


class Row(BaseModel):
    """A line of a patch with its numbers on both sides, 0 where it is on one side only."""

    kind: str
    old: int
    new: int
    text: str


class Hunk(BaseModel):
    """Lines that stand together."""

    where: str
    rows: list[Row] = []


class FileChange(BaseModel):
    """What a commit does to a file."""

    path: str
    added: int = 0
    removed: int = 0
    note: str = ""
    hunks: list[Hunk] = []


class Patch(BaseModel):
    """What a commit does."""

    files: list[FileChange] = []
    is_cut: bool = False

    @property
    def added(self) -> int:
        """Lines that are new."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Lines that are gone."""
        return sum(file.removed for file in self.files)


def of_commit(tree: Path, sha: str) -> Patch | None:
    """A commit's patch; None where the tree does not have it any more."""
    options = ("--format=", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "-U3")
    try:
        raw = git.run_git(tree, "show", *options, sha, "--", private=True)
    except (git.GitError, OSError):
        return None
    return read(raw.decode("utf-8", "replace"))


def read(text: str) -> Patch:
    """Take a patch apart."""
    patch = Patch()
    count = old = new = 0
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            patch.files.append(FileChange(path=_path(line)))
            continue
        if not patch.files:
            continue
        file = patch.files[-1]
        if match := _HUNK.match(line):
            old, new = int(match[1]), int(match[2])
            file.hunks.append(Hunk(where=match[3]))
        elif file.hunks and line[:1] in _KINDS:
            count += 1
            _count(file, line)
            if count <= MOST_LINES:
                file.hunks[-1].rows.append(_row(line, old, new))
            patch.is_cut = count > MOST_LINES
            old, new = old + (line[0] in "- "), new + (line[0] in "+ ")
        elif line.startswith(("+++ b/", "--- a/")):
            file.path = line[6:].rstrip("\t")
        elif line.startswith(("new file", "deleted file", "Binary files")):
            file.note = line
    return patch


def _count(file: FileChange, line: str) -> None:
    file.added += line[0] == "+"
    file.removed += line[0] == "-"


def _row(line: str, old: int, new: int) -> Row:
    kind = _KINDS[line[0]]
    return Row(kind=kind, old=old * (line[0] in "- "), new=new * (line[0] in "+ "), text=line[1:])


def _path(line: str) -> str:
    """The name in a head line, until a better one comes."""
    return line.rpartition(" b/")[2].strip('"')
