"""Where a new import goes: into the group it belongs to, in the order the file keeps."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from itertools import pairwise

from tools.code.edits import Edit
from tools.code.source import SourceFile

Import = ast.Import | ast.ImportFrom


def new_import(source: SourceFile, header: Sequence[ast.stmt], package: str) -> Edit | None:
    """An edit that adds ``import package`` to a file's leading statements, None where there is no import among them."""
    groups = _groups(source, header)
    if not groups:
        return None
    line = f"import {package}"
    mine = [g for g in groups if any(_kind(s) == _kind_of(package) for s in g)]
    same = [g for g in mine if any(_name(s).partition(".")[0] == package for s in g)]
    if same or mine:
        return _into(source, (same or mine)[0], package, line)
    earlier = [g for g in groups if all(_kind(s) < _kind_of(package) for s in g)]
    if earlier:
        return _after(source, earlier[-1][-1], f"{source.newline}{source.newline}{line}")
    return _before(source, groups[0][0], f"{line}{source.newline}{source.newline}")


def _groups(source: SourceFile, header: Sequence[ast.stmt]) -> list[list[Import]]:
    """The imports that have their lines to themselves, parted where an empty line or another statement is."""
    groups: list[list[Import]] = []
    previous: ast.stmt | None = None
    for statement in header:
        if isinstance(statement, Import) and _has_its_lines(source, statement):
            if isinstance(previous, Import) and groups and not _empty_between(source, previous, statement):
                groups[-1].append(statement)
            else:
                groups.append([statement])
        previous = statement
    return groups


def _has_its_lines(source: SourceFile, statement: ast.stmt) -> bool:
    return statement.col_offset == 0 and ";" not in source.line(statement.end_lineno or statement.lineno)


def _empty_between(source: SourceFile, first: ast.stmt, second: ast.stmt) -> bool:
    return any(not source.line(n).strip() for n in range((first.end_lineno or 0) + 1, second.lineno))


def _kind(statement: Import) -> int:
    """0 for the future, 1 for the standard library, 2 for other packages, 3 for the package's own modules."""
    if isinstance(statement, ast.ImportFrom) and statement.level:
        return 3
    return 0 if _name(statement) == "__future__" else _kind_of(_name(statement))


def _kind_of(name: str) -> int:
    return 1 if name.partition(".")[0] in sys.stdlib_module_names else 2


def _name(statement: Import) -> str:
    if isinstance(statement, ast.ImportFrom):
        return "." * statement.level + (statement.module or "")
    return statement.names[0].name


def _into(source: SourceFile, group: list[Import], package: str, line: str) -> Edit:
    """Into a group: where its order wants it, or at its end (for a mixed group: of its part) where it has no order."""
    part = [s for s in group if _kind(s) == _kind_of(package)]
    for plain_first in (True, False):
        keys = [(plain_first and isinstance(s, ast.ImportFrom), _name(s).lower()) for s in part]
        if all(first <= second for first, second in pairwise(keys)):
            later = next((s for s, k in zip(part, keys, strict=True) if k > (False, package)), None)
            if later is not None:
                return _before(source, later, f"{line}{source.newline}")
            break
    return _after(source, part[-1], f"{source.newline}{line}")


def _before(source: SourceFile, statement: ast.stmt, text: str) -> Edit:
    start = source.starts[statement.lineno - 1]
    return Edit(start, start, text)


def _after(source: SourceFile, statement: ast.stmt, text: str) -> Edit:
    """After a statement's line, in front of its line ending, so that whole lines added behind it come later."""
    number = statement.end_lineno or statement.lineno
    place = source.starts[number - 1] + len(source.line(number))
    return Edit(place, place, text)
