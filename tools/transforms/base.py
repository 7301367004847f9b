"""What a transformation is: it looks at a program and its recorded step, and proposes a change or gives advice."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from tools.code.edits import Edit, apply
from tools.code.module import Interest, Module
from tools.code.source import SourceFile, Unreadable
from tools.project import Project, is_test

Changes = Literal["nothing", "rounding", "batch"]


@dataclass(frozen=True)
class Proposal:
    """A change to try.

    Attributes:
        title: What it does, fit for a commit's first line.
        files: New contents by path; empty where only the command changes.
        command: Writes a command of the program with the change; None leaves it.
        note: What the reader of the commit should know.
        again: The same transformation may propose more once this is kept.
    """

    title: str
    files: dict[str, bytes] = field(default_factory=dict)
    command: Callable[[str], str] | None = None
    note: str = ""
    again: bool = False


@dataclass(frozen=True)
class Advice:
    """Why nothing is changed, where a person could."""

    reason: str


@dataclass
class Subject:
    """A program and what its recorded step shows.

    Attributes:
        root: Folder the entry runs in.
        command: The entry.
        step: The recording: operators, shapes, regions of torch.compile.
        fits: Whether the step fits the target; None where it is not known.
    """

    root: Path
    command: str
    step: dict[str, Any]
    fits: bool | None = None

    @cached_property
    def modules(self) -> dict[str, Module]:
        """The parsed files that are no tests, by path."""
        project, found = Project(self.root), dict[str, Module]()
        for path, data in project.sources():
            if is_test(path):
                continue
            with contextlib.suppress(Unreadable):
                source = SourceFile(path, data)
                found[path] = Module(source, project, Interest(range(1, source.text.count("\n") + 2)))
        return found

    @cached_property
    def loaded(self) -> set[str]:
        """Files of the program that the step's stacks go through."""
        return {file for stack in self.step["stacks"] for file, _, _ in stack}

    def on_path(self) -> Iterator[tuple[str, Module]]:
        """The files that the recorded step goes through."""
        for path, module in self.modules.items():
            if path in self.loaded:
                yield path, module

    def edited(self, path: str, edits: list[Edit]) -> dict[str, bytes]:
        """A file with edits applied, as bytes."""
        source = self.modules[path].source
        return {path: source.with_text(apply(source.editable, edits))}


class Transform(ABC):
    """One kind of change.

    Attributes:
        ID: Short name, as in logs.
        TITLE: For people.
        ORDER: When it is tried.
        CHANGES: What of the computation is other afterwards, on purpose: ``nothing``, ``rounding`` (narrower numbers)
            or ``batch`` (how many samples a step takes). It decides how the result is verified.
    """

    ID: ClassVar[str]
    TITLE: ClassVar[str]
    ORDER: ClassVar[int]
    CHANGES: ClassVar[Changes] = "nothing"

    @abstractmethod
    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """Propose a change, say why there is none, or None where the program gives no occasion."""
