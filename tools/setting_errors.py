"""Says what is wrong with a settings file: the line, the key, and the key that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from tools.errors import UserError

REMEDY = "See docs/settings.md for what it may contain."
_KEY = r"(?:\"[^\"]*\"|'[^']*'|[\w-]+)"
_HEADER = re.compile(rf"\s*\[\[?\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")


def explain(file: str, text: str, error: ValidationError, model: type[BaseModel], table: str = "") -> UserError:
    """The first of the errors, for the person who wrote the file.

    Args:
        file: Its name.
        text: What is in it.
        error: What pydantic said of it.
        model: What it was read as.
        table: The table that was read, '' for the whole file.
    """
    errors = error.errors()
    first, more = errors[0], len(errors) - 1
    place = [str(part) for part in first["loc"] if isinstance(part, str)]
    line = line_of(text, [*([table] if table else []), *place])
    said = _unknown(place, model, table) if first["type"] == "extra_forbidden" else _wrong(place, first, table)
    rest = f" (and {more} more)" if more else ""
    return UserError(f"{file}{f':{line}' if line else ''}: {said}{rest}", REMEDY)


def _unknown(place: Sequence[str], model: type[BaseModel], table: str) -> str:
    key, known = place[-1], dict(_keys(model))
    inside = ".".join([*([table] if table else []), *place[:-1]])
    where = f" in [{inside}]" if inside else ""
    here = known.get(".".join(place[:-1]), [])
    tables = [name for name, keys in known.items() if name and _plain(key) in keys]
    if tables:
        return f"there is no setting '{key}'{where}; it belongs in [{tables[0]}]"
    close = difflib.get_close_matches(_plain(key).lower(), here, n=1)
    if close:
        return f"there is no setting '{key}'{where}; did you mean '{close[0]}'?"
    return f"there is no setting '{key}'{where}; there are {', '.join(here)}"


def _keys(model: type[BaseModel], inside: str = "") -> Iterator[tuple[str, list[str]]]:
    """The keys of every table, by its name."""
    yield inside, [field.alias or name for name, field in model.model_fields.items()]
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _keys(kind, f"{inside}.{name}".lstrip("."))


def _wrong(place: Sequence[str], first: Any, table: str) -> str:
    *inside, key = [*([table] if table else []), *place] or ["the file"]
    where = f"[{'.'.join(inside)}] " if inside else ""
    reason = first["msg"].removeprefix("Value error, ")
    return f"{where}{key} = {first['input']!r}: {reason[:1].lower()}{reason[1:]}"


def line_of(text: str, place: Sequence[str]) -> int | None:
    """The line on which a key stands, or the table that it would stand in."""
    wanted = [_plain(part) for part in place]
    table: list[str] = []
    found, depth = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            here = table = _parts(header[1])
        elif assignment := _ASSIGNMENT.match(line):
            here = [*table, *_parts(assignment[1])]
        else:
            continue
        if depth < len(here) and here == wanted[: len(here)]:
            found, depth = number, len(here)
    return found


def _parts(dotted: str) -> list[str]:
    return [_plain(part.strip("\"'")) for part in re.findall(_KEY, dotted)]


def _plain(key: str) -> str:
    return key.replace("_", "-")
