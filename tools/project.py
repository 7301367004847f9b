"""Facts about a whole repository that a rule for one file may need."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tools.findings import Skipped

LEFT_OUT = frozenset(
    ".git .hg .svn __pycache__ node_modules .venv venv .tox .nox .mypy_cache .ruff_cache .pytest_cache .eggs "
    "site-packages .ipynb_checkpoints".split()
)
"""Folders that are never part of the user's own source."""


@dataclass
class Project:
    """A repository as a set of files.

    Args:
        root: its top folder.
        skipped: what listing left out, filled while ``paths`` is read.
    """

    root: Path
    skipped: list[Skipped] = field(default_factory=list)

    @cached_property
    def paths(self) -> list[str]:
        """POSIX paths of all regular files, sorted; links are reported as skipped and not followed."""
        return sorted(self._list())

    def _list(self) -> Iterator[str]:
        root = os.fspath(self.root)
        for folder, directories, names in os.walk(root, onerror=self._unlisted):
            relative = os.path.relpath(folder, root)
            prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
            kept = []
            for name in sorted(directories):
                if os.path.islink(os.path.join(folder, name)):
                    self.skipped.append(Skipped(path=prefix + name, reason="a link to a folder is not followed"))
                elif name not in LEFT_OUT and not self._is_environment(os.path.join(folder, name), prefix + name):
                    kept.append(name)
            directories[:] = kept
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    self.skipped.append(Skipped(path=prefix + name, reason=_link(path, root)))
                elif os.path.isfile(path):
                    yield prefix + name

    def _is_environment(self, path: str, relative: str) -> bool:
        if os.path.exists(os.path.join(path, "pyvenv.cfg")):
            return True
        if os.path.exists(os.path.join(path, ".git")):
            self.skipped.append(
                Skipped(path=relative, reason="a repository of its own (a submodule); migrate it by itself")
            )
            return True
        return False

    def _unlisted(self, error: OSError) -> None:
        self.skipped.append(Skipped(path=str(error.filename), reason=f"cannot be listed: {error.strerror}"))

    @cached_property
    def own_cuda_methods(self) -> frozenset[str]:
        """Files in which some class defines its own ``cuda`` method, so that ``.cuda()`` may mean that one."""
        found = []
        for path in self.paths:
            if path.endswith(".py"):
                try:
                    data = (self.root / path).read_bytes()
                except OSError:
                    continue
                if b"def cuda" in data and _CUDA_METHOD.search(data):
                    found.append(path)
        return frozenset(found)


@dataclass
class TextProject(Project):
    """A project held in memory, for rule cases and tests.

    Args:
        root: a name for messages; nothing is read from it.
        texts: contents by POSIX path.
    """

    texts: Mapping[str, bytes] = field(default_factory=dict)

    def _list(self) -> Iterator[str]:
        yield from self.texts

    @cached_property
    def own_cuda_methods(self) -> frozenset[str]:
        """See ``Project.own_cuda_methods``."""
        return frozenset(path for path, data in self.texts.items() if _CUDA_METHOD.search(data))


_CUDA_METHOD = re.compile(rb"^[ \t]+def cuda[ \t]*\(", re.MULTILINE)


def _link(path: str, root: str) -> str:
    target = os.path.realpath(path)
    if not os.path.exists(target):
        return "a link that leads nowhere or round in a circle"
    inside = target == os.path.realpath(root) or target.startswith(os.path.realpath(root) + os.sep)
    return "a link to a file of the tree (examined there)" if inside else "a link out of the tree is not followed"
