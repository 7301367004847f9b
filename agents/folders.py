"""Copies a folder that is not a git repository: its code, not its data, environments or caches."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.project import LEFT_OUT
from tools.wording import amount

LARGEST = 8 * 2**20


def copy(source: Path, target: Path, aside: Path) -> list[str]:
    """Copy the files that a migration may look at, and say what was left out.

    Args:
        source: The user's folder.
        target: Folder to make.
        aside: Folder that is not descended into, because it holds the copy.

    Returns:
        Notes for the user.
    """
    target.mkdir(parents=True)
    notes: list[str] = []
    large: list[str] = []
    for folder, folders, files in os.walk(source):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if _is_taken(here / name, aside))
        relative = here.relative_to(source)
        (target / relative).mkdir(exist_ok=True)
        for name in sorted([*files, *(n for n in os.listdir(here) if (here / n).is_symlink())]):
            path = here / name
            if path.is_symlink():
                _copy_link(path, target / relative / name, source, notes)
            elif path.is_file() and not os.path.lexists(target / relative / name):
                _copy_file(path, target / relative / name, large, notes)
    if large:
        notes.append(f"{amount(len(large), 'file')} over 8 MB, taken for data and not migrated")
    return list(dict.fromkeys(notes))


def _is_taken(path: Path, aside: Path) -> bool:
    if path.is_symlink() or path.name in LEFT_OUT:
        return False
    return not (path / "pyvenv.cfg").exists() and not aside.is_relative_to(path.resolve())


def _copy_file(path: Path, target: Path, large: list[str], notes: list[str]) -> None:
    if path.stat().st_size > LARGEST:
        large.append(path.name)
        return
    try:
        shutil.copy2(path, target)
    except PermissionError:
        notes.append(f"{path.name} cannot be read and is left out")


def _copy_link(path: Path, target: Path, source: Path, notes: list[str]) -> None:
    if os.path.lexists(target):
        return
    if not path.exists():
        notes.append(f"{path.name} is a link that leads nowhere or round in a circle; left out")
    elif not path.resolve().is_relative_to(source):
        notes.append(f"{path.name} is a link out of the folder; not followed")
    else:
        target.symlink_to(os.readlink(path))
