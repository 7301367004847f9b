"""Makes the disposable folder that a migrated program runs in, with the user's data but not their files.

The program may write there as it likes: nothing in it is a file of the user's checkout, except large
data files, which are links when the sandbox makes their targets read-only, and copies otherwise.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import BaseModel

from agents.runs import home, remove_tree
from tools import run as runner
from tools.errors import Exit, UserError, lacks_room
from tools.project import LEFT_OUT

LARGE = 8 * 2**20
MANY = 20_000
_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".pkl", ".npz")
_LARGEST_CHECKPOINT = 2**30
_LFS = b"version https://git-lfs.github.com/spec/"


class Overlay(BaseModel):
    """What of the user's untracked files went into the run folder."""

    copied: int = 0
    linked: int = 0
    notes: list[str] = []


def set_up(text: str, request: runner.RunRequest, on_output: Callable[[str], None] | None = None) -> None:
    """Do a setup command of the user's in such a folder.

    Raises:
        UserError: It did not come to a good end.
    """
    output = runner.run(request, on_output=on_output)
    if output.outcome != "completed":
        raise UserError(
            f"The setup command '{text}' failed. {output.explanation}",
            f"Its output is in {request.log}",
            Exit.ENVIRONMENT,
        )


def build(tree: Path, original: Path | None, work: Path, *, links: bool, left_out: set[str]) -> Overlay:
    """Make `work`: the files of `tree`, and over them what only `original` has.

    Args:
        tree: The private, migrated tree.
        original: The user's folder, or None when there is none.
        work: Folder to make; an old one is removed.
        links: Whether large files may be links to the originals.
        left_out: Files of `original` that are not taken, such as those with uncommitted changes.

    Raises:
        UserError: The disk is full.
    """
    remove_tree(work)
    try:
        _copy_tree(tree, original, work)
        return _Filler(original, work, links, left_out).fill() if original else Overlay()
    except OSError as error:
        if not lacks_room(error):
            raise
        raise UserError(
            f"There is no room for a copy of the files at {work}.",
            "Free some space, or point TORCHTPU_HOME at another disk; large data is linked, not copied, in a sandbox.",
            Exit.ENVIRONMENT,
        ) from error


def _copy_tree(tree: Path, original: Path | None, work: Path) -> None:
    shutil.copytree(tree, work, symlinks=True, ignore=_without_git(tree))
    for path in _walk_links(work):
        target = path.parent / os.readlink(path)
        if original is None or _stays_in(target, work):
            continue
        # A relative link out of the tree means something beside the user's checkout, not beside us.
        meant = (original / path.relative_to(work)).parent / os.readlink(path)
        path.unlink()
        path.symlink_to(os.path.abspath(meant))


def _without_git(tree: Path) -> Callable[[str, list[str]], list[str]]:
    return lambda folder, _names: [".git"] if Path(folder) == tree else []


def _walk_links(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        yield from (path for name in [*folders, *files] if (path := Path(folder, name)).is_symlink())


def _stays_in(target: Path, root: Path) -> bool:
    return Path(os.path.normpath(target)).is_relative_to(root)


class _Filler:
    def __init__(self, original: Path, work: Path, links: bool, left_out: set[str]) -> None:
        self._original = original
        self._work = work
        self._links = links
        self._left_out = left_out
        self._overlay = Overlay()

    def fill(self) -> Overlay:
        self._folder("")
        return self._overlay

    def _folder(self, relative: str) -> None:
        for item in sorted(os.scandir(self._original / relative), key=lambda entry: entry.name):
            name = f"{relative}{item.name}"
            if name in self._left_out or self._is_left_out(item):
                continue
            if item.is_symlink():
                self._link(item, name)
            elif item.is_dir():
                self._subfolder(item, name)
            elif item.is_file() and self._is_missing(name):
                self._file(item, name)

    def _subfolder(self, item: os.DirEntry[str], name: str) -> None:
        here = self._work / name
        if self._links and not here.exists() and _holds_many(item.path):
            here.symlink_to(item.path)
            self._overlay.linked += 1
            self._overlay.notes.append(f"{name}/ holds over {MANY} files and is linked as a whole, read-only")
            return
        here.mkdir(exist_ok=True)
        self._folder(f"{name}/")

    def _is_left_out(self, item: os.DirEntry[str]) -> bool:
        if item.name in LEFT_OUT:
            return True
        path = Path(item.path)
        return path.is_dir() and ((path / "pyvenv.cfg").exists() or path == home())

    def _is_missing(self, name: str) -> bool:
        """Whether the tree lacks the file, or has only the pointer to it that Git LFS keeps."""
        path = self._work / name
        if not os.path.lexists(path):
            return True
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1024:
            return False
        return path.read_bytes().startswith(_LFS)

    def _link(self, item: os.DirEntry[str], name: str) -> None:
        path = self._work / name
        if os.path.lexists(path):
            return
        text = os.readlink(item.path)
        if not os.path.exists(item.path):
            self._overlay.notes.append(f"{name} is a link that leads nowhere or round in a circle; left out")
            return
        outside = not _stays_in(Path(item.path).parent / text, self._original)
        path.symlink_to(os.path.realpath(item.path) if outside else text)

    def _file(self, item: os.DirEntry[str], name: str) -> None:
        size = item.stat().st_size
        path = self._work / name
        path.unlink(missing_ok=True)
        overwritten = name.endswith(_CHECKPOINTS) and size <= _LARGEST_CHECKPOINT
        if size > LARGE and self._links and not overwritten:
            path.symlink_to(item.path)
            self._overlay.linked += 1
            return
        try:
            shutil.copy2(item.path, path)
        except PermissionError:
            self._overlay.notes.append(f"{name} cannot be read; left out")
            return
        self._overlay.copied += 1


def _holds_many(path: str) -> bool:
    count = 0
    for _, _, files in os.walk(path):
        count += len(files)
        if count > MANY:
            return True
    return False
