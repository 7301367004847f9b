"""Requirements as they are written in pip, pyproject, setup and conda files, with the exact place of every part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.code.source import SourceFile

PIP_FILES = (
    "*requirements*.txt",
    "requirements/*.txt",
    "*/requirements/*.txt",
    "*constraints*.txt",
    "*requirements*.in",
)
"""Files with one requirement a line."""
QUOTED_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
CONDA_FILES = ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml", "*env.yml", "*env.yaml")
FILES = (*PIP_FILES, *QUOTED_FILES, *CONDA_FILES)

_NAME = r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[^\]\n]*\])?"
_SPEC = r"(?P<gap>[ \t]*)(?P<spec>\(?(?:[=<>!~^]{1,3}[ \t]*[\w.*+!-]+(?:=[\w.*]+)?(?:[ \t]*,[ \t]*)?)*\)?)"
_END = r"(?=[ \t]*(?:[;#@]|[ \t]--|\\?\r?$))"
_LINE = re.compile(rf"^[ \t]*{_NAME}{_SPEC}{_END}", re.MULTILINE)
_ITEM = re.compile(
    rf"^[ \t]*-[ \t]+(?P<quote>[\"']?)(?:[\w-]+::)?{_NAME}{_SPEC}(?P=quote)[ \t]*(?:[;#].*)?\r?$", re.MULTILINE
)
_QUOTED = re.compile(rf"(?P<quote>[\"']){_NAME}{_SPEC}[ \t]*(?:;[^\"'\n]*)?(?P=quote)(?![ \t]*[:=])")
_POETRY = re.compile(
    rf"^[ \t]*{_NAME}(?P<gap>[ \t]*=[ \t]*(?:\{{[^\n]*?version[ \t]*=[ \t]*)?\")(?P<spec>[^\"\n]*)\"", re.MULTILINE
)


@dataclass(frozen=True)
class Requirement:
    """One requirement.

    Attributes:
        name: in normal form, ``flash-attn``.
        spec: the version clauses, such as ``==2.1.0+cu121``.
        start: offset of the name.
        spec_start: offset of the version clauses.
        end: offset after them.
        alone: whether it has a line to itself, which a ``#`` in front would turn into a comment.
    """

    name: str
    spec: str
    start: int
    spec_start: int
    end: int
    alone: bool


def requirements(source: SourceFile) -> Iterator[Requirement]:
    """Every requirement of a file, by position; comments have none."""
    name = source.relative.rpartition("/")[2]
    if name.endswith((".txt", ".in")):
        patterns = [_LINE]
    elif name.endswith((".yml", ".yaml")):
        patterns = [_ITEM]
    elif name == "setup.cfg":
        patterns = [re.compile(rf"^[ \t]+{_NAME}{_SPEC}{_END}", re.MULTILINE)]
    else:
        patterns = [_QUOTED, _POETRY] if name == "pyproject.toml" else [_QUOTED]
    found = [
        _requirement(match, alone=patterns[0] in (_LINE, _ITEM)) for p in patterns for match in p.finditer(source.text)
    ]
    yield from sorted((r for r in found if not _in_comment(source, r.start)), key=lambda r: r.start)


def _requirement(match: re.Match[str], *, alone: bool) -> Requirement:
    name = re.sub(r"[-_.]+", "-", match.group("name")).lower()
    return Requirement(name, match.group("spec"), match.start("name"), match.start("spec"), match.end("spec"), alone)


def _in_comment(source: SourceFile, offset: int) -> bool:
    line, column = source.position(offset)
    return re.search(r"(?:^|\s)#", source.line(line)[: column - 1]) is not None


_CLAUSE = re.compile(r"([=<>!~^]{1,3})[ \t]*v?([0-9]+(?:\.[0-9]+)*)(\.\*)?")


def allows(spec: str, version: tuple[int, int]) -> bool:
    """Whether version clauses allow a release such as ``(2, 11)``, patch releases counted as equal."""
    return all(_holds(m.group(1), m.group(2), bool(m.group(3)), version) for m in _CLAUSE.finditer(spec))


def _holds(operator: str, text: str, prefix: bool, version: tuple[int, int]) -> bool:
    parts = [int(part) for part in text.split(".")]
    bound = (parts[0], parts[1] if len(parts) > 1 else 0)
    if operator in ("==", "===", "="):
        short = len(parts) == 1 and (prefix or operator == "=")
        return version[0] == bound[0] if short else version == bound
    if operator == "~=":
        return version[0] == bound[0] and version >= bound if len(parts) < 3 else version == bound
    if operator == "^":
        return version[0] == bound[0] and version >= bound
    if operator == "~":
        return version == bound
    # A patch release of the bound's own minor version may still be below it.
    below = version < bound or (operator == "<" and version == bound and any(parts[2:]))
    return {"<": below, "<=": version <= bound, ">": version >= bound, ">=": version >= bound}.get(operator, True)
