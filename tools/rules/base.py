"""What a rule is: one kind of finding, in one file, with the cases that define it."""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import ClassVar

from tools.code.edits import Fix
from tools.code.module import Module
from tools.code.source import SourceFile
from tools.findings import Grade
from tools.project import Project


@dataclass(frozen=True)
class Match:
    """A place a rule found: a span of characters, what to say, and the fix where one is certain enough.

    Attributes:
        start: first character.
        end: the character after the last.
        message: what is wrong, in one sentence; empty for the rule's own MESSAGE.
        fix: what to do about it, or None.
        grade: differs from the rule's own where this place is less (or more) certain.
        note: why it is left to a person, or what the fix assumes.
    """

    start: int
    end: int
    message: str = ""
    fix: Fix | None = None
    grade: Grade | None = None
    note: str | None = None


@dataclass(frozen=True)
class Valid:
    """A file the rule must leave alone."""

    text: str
    path: str = "train.py"


@dataclass(frozen=True)
class Invalid:
    """A file with findings.

    Attributes:
        text: the file.
        fixed: the file after the fix was applied to a fixed point (None: nothing may change).
        count: findings before.
        unsafe: whether the fix is graded unsafe.
        path: the file's name.
    """

    text: str
    fixed: str | None
    count: int = 1
    unsafe: bool = False
    path: str = "train.py"


class Rule(ABC):
    """One kind of finding.

    A subclass sits alone in ``tools/rules/tpuNNN_verb_object.py``, is found by that name, and says in its docstring
    what, why, and what it does not cover.

    Attributes:
        ID: stable, ``TPU101``; never reused.
        NAME: verb and object, as in the file name, with hyphens.
        FAMILY: letter of the kind of failure (A device selection, B runtime calls, C mixed precision, D distributed,
            E checkpoints, F libraries, G data loading, H random numbers, I torch_xla, J dynamic shapes, K dtypes,
            L operators, M parameters, N memory, O numerics, P DataParallel, Q torch.compile, R TorchTPU).
        GRADE: of its findings unless a match says otherwise.
        MESSAGE: what the user reads.
        TRIGGERS: a file without any of these strings cannot have a finding (case matters); a line too.
        REQUIRES: a file without each of these strings cannot have a finding either.
        COVERS: rows of ``tools/coverage.toml`` this rule answers.
        REASON: why the rule is there, where no row asks for it.
        VALID: cases to leave alone.
        INVALID: cases with their expected replacement.
    """

    ID: ClassVar[str]
    NAME: ClassVar[str]
    FAMILY: ClassVar[str]
    GRADE: ClassVar[Grade] = Grade.SAFE
    MESSAGE: ClassVar[str]
    TRIGGERS: ClassVar[tuple[str, ...]]
    REQUIRES: ClassVar[tuple[str, ...]] = ()
    COVERS: ClassVar[tuple[str, ...]] = ()
    REASON: ClassVar[str] = ""
    VALID: ClassVar[tuple[str | Valid, ...]] = ()
    INVALID: ClassVar[tuple[Invalid, ...]] = ()


class Scope(IntEnum):
    """How much around a line with one of its words a rule looks at; the rest of a long file may not be parsed."""

    FUNCTION = 1
    CLASS = 2
    FILE = 3


class PythonRule(Rule):
    """A rule for Python source, scripts and notebook cells alike.

    Parsing is nearly all a scan costs, so what a rule declares decides on the speed of the whole. Choose words that are
    rare in code the rule has nothing to do with, give REQUIRES or a PATTERN where each word alone is common, and leave
    SCOPE alone unless ``check`` needs it. Words and pattern are looked for in code only: not in comments, nor inside
    strings of several lines. An entry of REQUIRES may hold alternatives (``left|right``). ``check`` starts from
    ``module.calls``, ``module.references`` or ``module.nodes``, which hold only what touches a line with a word of some
    rule (and all imports), and not from ``ast.walk`` of the tree.

    Attributes:
        PATTERN: a regular expression (``^`` and ``$`` stand for lines) that matches somewhere in every file with a
            finding; it is tried where TRIGGERS and REQUIRES hold, and decides on the file only. Aliases count:
            ``from torch import load`` has no ``torch.load(`` in it.
        WHOLE_WORDS: whether an identifier at an end of one of TRIGGERS or REQUIRES is a whole one (``optim`` is not
            in ``optimizer``, ``*optim*`` is), for which a file is searched once for all rules; ``cuda`` alone then
            wakes a rule where ``cuda`` or ``is_cuda`` is an identifier, and counts in longer ones too (``use_cuda``)
            for the lines.
        TESTS: whether findings in tests count. Not where the advice is about speed on a TPU, or about programs that
            train: what a unit test computes with is small, and on the device its author chose.
        SCOPE: what ``check`` looks at besides imports: the outermost function around a line with one of the TRIGGERS
            (for a line outside functions, all statements of its class or of the module that are in no function), the
            whole class, or the whole file.
    """

    PATTERN: ClassVar[str] = ""
    WHOLE_WORDS: ClassVar[bool] = False
    TESTS: ClassVar[bool] = True
    SCOPE: ClassVar[Scope] = Scope.FUNCTION

    @abstractmethod
    def check(self, module: Module) -> Iterator[Match]:
        """Yields the places found in one module."""


class TextRule(Rule):
    """A rule for files that are not Python: requirements, Dockerfiles, YAML, shell.

    Attributes:
        FILES: patterns for the file's name or its whole POSIX path, such as ``*.yaml`` or ``requirements*.txt``.
        INTERPRETERS: programs, such as ``bash``, that make a script without a suffix such a file when its first line
            calls one.
    """

    FILES: ClassVar[tuple[str, ...]]
    INTERPRETERS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def reads(cls, path: str) -> bool:
        """Whether the rule is for a file of this name."""
        return fits(path, cls.FILES)

    @classmethod
    def interprets(cls, data: bytes) -> bool:
        """Whether a file begins with a line that calls one of the rule's interpreters."""
        if not cls.INTERPRETERS or not data.startswith(b"#!"):
            return False
        words = data.partition(b"\n")[0].decode("utf-8", "replace").replace("/", " ").split()
        return any(interpreter in words for interpreter in cls.INTERPRETERS)

    def judge(self, match: Match, source: SourceFile, project: Project) -> Match:
        """The match in the light of the rest of the repository; as it is, unless a rule knows better."""
        del source, project
        return match

    @abstractmethod
    def check(self, source: SourceFile) -> Iterator[Match]:
        """Yields the places found in one file."""


def fits(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns fits a file's name or, where it has a slash, its whole path."""
    names, paths = _compiled(patterns)
    return bool(names.match(path.rpartition("/")[2]) or paths.match(path))


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What fits a file's name, and what fits its whole path."""
    names = [fnmatch.translate(pattern) for pattern in patterns if "/" not in pattern]
    paths = [fnmatch.translate(pattern) for pattern in patterns if "/" in pattern]
    return re.compile("|".join(names) or r"(?!)"), re.compile("|".join(paths) or r"(?!)")


def interest(rules: Sequence[Rule]) -> tuple[str, ...]:
    """The words that make a line worth visiting for these rules: their triggers, without those that hold another."""
    words = {trigger.strip("*") for rule in rules if isinstance(rule, PythonRule) for trigger in rule.TRIGGERS}
    return tuple(sorted(word for word in words if not any(other in word for other in words - {word})))
