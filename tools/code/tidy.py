"""Takes away imports whose last use a fix took away."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.code.edits import Edit, apply
from tools.code.source import SourceFile, Unreadable, parse
from tools.project import Project

_Import = ast.Import | ast.ImportFrom


def without_orphans(path: str, before: bytes, after: bytes, project: Project) -> bytes:
    """The file without imports of torch that its old text used and its new one does not.

    An import stays where it may be meant for others: in an ``__init__.py``, where ``__all__`` or another file of the
    repository names it, beside a comment, or where nothing would be left of its block.

    Args:
        path: the file.
        before: its bytes before the fixes.
        after: its bytes after them.
        project: the repository, for what other files import.
    """
    if path.rpartition("/")[2] == "__init__.py" or not path.endswith(".py"):
        return after
    source = SourceFile(path, after)
    try:
        old, new = parse(SourceFile(path, before)), parse(source)
    except Unreadable:
        return after
    orphans = (_bound(old) & _used(old)) - _used(new) - _exported(new)
    if not orphans:
        return after
    orphans -= project.imported_names
    edits = [edit for statement, block in _imports(new) for edit in _removal(source, statement, block, orphans)]
    return source.with_text(apply(source.editable, edits)) if edits else after


def _bound(tree: ast.Module) -> set[str]:
    return {name for statement, _ in _imports(tree) for alias in statement.names if (name := _name(statement, alias))}


def _name(statement: _Import, alias: ast.alias) -> str | None:
    """The name that an import from torch binds; None for any other, ``*``, and torch itself, whose import counts."""
    named = isinstance(statement, ast.ImportFrom)
    origin = ("." * statement.level + (statement.module or "")) if isinstance(statement, ast.ImportFrom) else alias.name
    if origin.split(".")[0] != "torch" or alias.name in ("*", "torch"):
        return None
    return alias.asname or (alias.name if named else alias.name.partition(".")[0])


def _used(tree: ast.Module) -> set[str]:
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):  # an annotation, a doctest, an exec
            used.update(_WORD.findall(node.value))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            used.update(node.names)
    return used


_WORD = re.compile(r"\w+")


def _exported(tree: ast.Module) -> set[str]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) and statement.value is not None:
            if "__all__" in ast.unparse(statement):
                return {
                    n.value
                    for n in ast.walk(statement.value)
                    if isinstance(n, ast.Constant) and isinstance(n.value, str)
                }
    return set()


def _imports(tree: ast.Module) -> Iterator[tuple[_Import, list[ast.stmt]]]:
    for node in ast.walk(tree):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list):
                for statement in block:
                    if isinstance(statement, _Import):
                        yield statement, block


def _removal(source: SourceFile, statement: _Import, block: list[ast.stmt], orphans: set[str]) -> Iterator[Edit]:
    gone = [alias for alias in statement.names if _name(statement, alias) in orphans]
    start = source.offset(statement.lineno, statement.col_offset)
    end = source.offset(statement.end_lineno or statement.lineno, statement.end_col_offset or 0)
    text = source.text[start:end]
    if not gone or "#" in text or "\\" in text:
        return
    if len(gone) < len(statement.names):
        yield from _aliases(source, statement, gone)
        return
    first = source.offset(statement.lineno, 0)
    line_end = source.text.find("\n", end)
    alone = not source.text[first:start].strip() and not source.text[end : line_end + 1].strip()
    if alone and line_end >= 0 and len(block) > 1:
        yield Edit(first, line_end + 1, "")


def _aliases(source: SourceFile, statement: _Import, gone: list[ast.alias]) -> Iterator[Edit]:
    """Takes aliases out of a list, each with the comma and space that led to it (or follow, for the first ones)."""
    spans = [_span(source, alias) for alias in statement.names]
    kept = [i for i, alias in enumerate(statement.names) if alias not in gone]
    for index, alias in enumerate(statement.names):
        if alias in gone:
            start, end = spans[index]
            if index < kept[0]:
                yield Edit(start, spans[index + 1][0], "")
            else:
                yield Edit(spans[index - 1][1], end, "")


def _span(source: SourceFile, alias: ast.alias) -> tuple[int, int]:
    end_line, end_column = alias.end_lineno or alias.lineno, alias.end_col_offset or 0
    return source.offset(alias.lineno, alias.col_offset), source.offset(end_line, end_column)
