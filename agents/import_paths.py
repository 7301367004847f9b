"""Folders of the migrated copy from which a program imports, besides the folder of its script.

A project that is meant to be installed is often installed in place. Without these folders first on the
path, the program would import its packages from the user's checkout, which is not the migrated code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")


def of_project(tree: Path, scope: str) -> list[str]:
    """Folders that installing the project in place would put on the path, relative to `tree`."""
    found: list[str] = []
    for folder in dict.fromkeys((scope, "")):
        if any((tree / folder / name).is_file() for name in _INSTALLABLE):
            found += [part for part in (os.path.join(folder, "src"), folder) if (tree / part).is_dir()]
    return found


def holding(module: str, tree: Path, scope: str, scripts: Iterable[str]) -> str | None:
    """The folder of the tree that holds a top-level module: beside a script or above it, or `src`.

    Args:
        module: Dotted name; its first part is looked for.
        tree: The migrated tree.
        scope: The folder the scripts are relative to.
        scripts: Files that the program starts.
    """
    top = module.split(".")[0]
    folders = [parent for script in scripts for parent in Path(scope, script).parents]
    for folder in dict.fromkeys([*folders, Path(scope), Path(scope, "src"), Path(), Path("src")]):
        if (tree / folder / top).is_dir() or (tree / folder / f"{top}.py").is_file():
            return "" if folder == Path() else folder.as_posix()
    return None


def within(root: Path, paths: Iterable[str]) -> list[Path]:
    """These folders of the tree in one copy of it."""
    return [root / path for path in paths]
