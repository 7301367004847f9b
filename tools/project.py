"""Facts about a whole repository that a rule for one file may need."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import cached_property, reduce
from operator import or_
from pathlib import Path

from tools.code.source import Unreadable, load
from tools.findings import Skipped
from tools.settings import ScanSettings

LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".nox", ".mypy_cache",
     ".ruff_cache", ".pytest_cache", ".eggs", "site-packages", ".ipynb_checkpoints"}
)  # fmt: skip
"""Folders that are never part of the user's own source."""
_TEST_NAME = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$|(?:^|/)(?:tests?|testing)/")


def is_test(path: str) -> bool:
    """Whether a file is part of the tests by its name."""
    return bool(_TEST_NAME.search(path))


class Trait(Flag):
    """What a Python file has that rules for other files ask for."""

    NONE = 0
    OWN_CUDA = auto()
    """A class with a ``cuda`` method of its own, so that ``.cuda()`` may mean that one."""
    ASKS_FOR_ACCELERATOR = auto()
    """A test for ``torch.accelerator``, which older releases of PyTorch lack."""
    HALF_ON_CUDA = auto()
    """It takes bfloat16 off CUDA where its settings ask for float16, as rule TPU305 writes it."""


def traits_of(path: str, data: bytes) -> Trait:
    """What one file has."""
    found = Trait.NONE
    if path.endswith(".py"):
        if b"def cuda" in data and _CUDA_METHOD.search(data):
            found |= Trait.OWN_CUDA
        if b"accelerator" in data and _ASKS.search(data) and not _OWN.search(data):
            found |= Trait.ASKS_FOR_ACCELERATOR
        if b"float16 else" in data and _HALF_ON_CUDA.search(data):
            found |= Trait.HALF_ON_CUDA
    return found


@dataclass
class Project:
    """A repository as a set of files.

    Args:
        root: its top folder.
        settings: what its owner asks to be left out.
        skipped: what listing left out, filled while ``paths`` is read.
        known: traits of files read so far, for who reads all of them anyway; None to have them read when asked for.
        asked: traits that were asked for and are not known.
    """

    root: Path
    settings: ScanSettings = field(default_factory=ScanSettings)
    skipped: list[Skipped] = field(default_factory=list)
    known: Trait | None = None
    asked: Trait = Trait.NONE

    @cached_property
    def paths(self) -> list[str]:
        """POSIX paths of all regular files, sorted; links are reported as skipped and not followed."""
        return sorted(self._list())

    def _list(self) -> Iterator[str]:
        root = os.fspath(self.root)
        for folder, directories, names in os.walk(root, onerror=self._unlisted):
            relative = os.path.relpath(folder, root)
            prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
            directories[:] = [name for name in sorted(directories) if self._enters(folder, name, prefix + name)]
            for name in names:
                if self._takes(os.path.join(folder, name), prefix + name, root):
                    yield prefix + name

    def _enters(self, folder: str, name: str, relative: str) -> bool:
        path = os.path.join(folder, name)
        if name in LEFT_OUT or self.settings.excludes(relative):
            return False
        if os.path.islink(path):
            self._skip(relative, "a link to a folder is not followed")
            return False
        return not self._is_environment(path, relative)

    def _takes(self, path: str, relative: str, root: str) -> bool:
        if self.settings.excludes(relative):
            return False
        if os.path.islink(path):
            self._skip(relative, _link(path, root))
        elif not _is_text(relative):
            self._skip(relative, "its name is not UTF-8")
        elif os.path.isfile(path):
            return True
        elif os.path.lexists(path):
            self._skip(relative, "not a regular file")
        return False

    def _skip(self, path: str, reason: str) -> None:
        shown = path.encode("utf-8", "backslashreplace").decode()
        self.skipped.append(Skipped(path=shown, reason=reason))

    def _is_environment(self, path: str, relative: str) -> bool:
        if os.path.exists(os.path.join(path, "pyvenv.cfg")):
            return True
        if os.path.exists(os.path.join(path, ".git")):
            self._skip(relative, "a repository of its own (a submodule); migrate it by itself")
            return True
        return False

    def _unlisted(self, error: OSError) -> None:
        relative = os.path.relpath(error.filename, self.root).replace(os.sep, "/")
        self._skip(relative, f"cannot be listed: {error.strerror}")

    def read(self, path: str) -> bytes:
        """The bytes of one of ``paths``.

        Raises:
            Unreadable: see ``tools.code.source.load``.
        """
        return load(self.root / path)

    def sources(self, suffixes: tuple[str, ...] = (".py",)) -> Iterator[tuple[str, bytes]]:
        """Path and bytes of every file with one of these suffixes that can be read."""
        for path in self.paths:
            if path.endswith(suffixes):
                with contextlib.suppress(Unreadable):
                    yield path, self.read(path)

    @cached_property
    def imported_names(self) -> frozenset[str]:
        """Names that some file imports from another module than torch's, so that they may come from any other file."""
        imported = (names for _, data in self.sources((".py", ".ipynb")) for names in _FROM_IMPORT.findall(data))
        return frozenset(name for names in imported for name in _NAME.findall(names.decode("utf-8", "replace")))

    @cached_property
    def kernel_folders(self) -> frozenset[str]:
        """Folders with CUDA sources."""
        return frozenset(path.rpartition("/")[0] for path in self.paths if path.endswith((".cu", ".cuh")))

    def has(self, trait: Trait) -> bool:
        """Whether some file has a trait, as far as is known."""
        if self.known is None:
            return trait in self._traits
        if trait in self.known:
            return True
        self.asked |= trait
        return False

    @cached_property
    def _traits(self) -> Trait:
        return reduce(or_, (traits_of(path, data) for path, data in self.sources()), Trait.NONE)


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

    def read(self, path: str) -> bytes:
        """See ``Project.read``."""
        return self.texts[path]


_FROM_IMPORT = re.compile(rb"\bfrom[ \t]+(?!torch\b)[\w.]+[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)")
_NAME = re.compile(r"\w+")
_HALF_ON_CUDA = re.compile(rb"!= (?:torch\.)?float16 else (?:torch\.)?bfloat16")
_ASKS = re.compile(rb"(has|get)attr\(\s*torch\s*,\s*[\"']accelerator[\"']")
_OWN = re.compile(rb"hasattr\(torch, \"accelerator\"\) and torch\.accelerator\.is_available\(\)\s+else")
_CUDA_METHOD = re.compile(rb"^[ \t]+def cuda[ \t]*\(", re.MULTILINE)


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _link(path: str, root: str) -> str:
    target = os.path.realpath(path)
    if not os.path.exists(target):
        return "a link that leads nowhere or round in a circle"
    inside = target == os.path.realpath(root) or target.startswith(os.path.realpath(root) + os.sep)
    return "a link to a file of the tree (examined there)" if inside else "a link out of the tree is not followed"
