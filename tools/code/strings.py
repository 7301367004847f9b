"""The code of a Python text: what is left when comments and strings of several lines are blanked out."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r'#[^\n]*+|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'",
    re.DOTALL,
)
"""A comment or a string."""
_MARKS = ("#", '"""', "'''")


def code_of(text: str) -> str:
    """The text, as long as it was, with spaces for comments and for what is inside strings of several lines.

    Such a string keeps its first and last character and becomes one line with what follows it. Only a line with another
    quote before a comment or a long string is tokenized. The text is taken to be Python: where it is not, a parser will
    say so.

    Args:
        text: Python source whose lines end with a line feed alone.
    """
    pieces: list[str] = []
    kept = position = 0
    places = [_find(text, mark, 0) for mark in _MARKS]
    while True:
        for index, known in enumerate(places):
            if known < position:
                places[index] = _find(text, _MARKS[index], position)
        place = min(places)
        if place == len(text):
            return "".join([*pieces, text[kept:]])
        over = _token_over(text, place, position)
        if over is not None:
            position = over
            continue
        position = _end(text, place)
        inside = 0 if text[place] == "#" else 1
        if not inside or text.find("\n", place, position) >= 0:
            pieces += (text[kept : place + inside], " " * (position - place - 2 * inside))
            kept = position - inside


def _find(text: str, mark: str, start: int) -> int:
    place = text.find(mark, start)
    return place if place >= 0 else len(text)


def _token_over(text: str, place: int, after: int) -> int | None:
    """Where to go on if ``place`` is in a short string, None if it is not.

    Args:
        text: the source.
        place: an offset.
        after: an offset before it that is in no string.
    """
    start = text.rfind("\n", after, place) + 1 or after
    while start > after + 1 and text[start - 2] == "\\":
        start = text.rfind("\n", after, start - 1) + 1 or after
    if text.find('"', start, place) < 0 and text.find("'", start, place) < 0:
        return None
    for token in _TOKEN.finditer(text, start):
        if token.end() > place:
            return token.end() if token.start() < place else None
    return place + 1


def _end(text: str, place: int) -> int:
    """The end of the comment or long string that starts at ``place``; the text's end if it has none."""
    if text[place] == "#":
        return _find(text, "\n", place)
    quote = text[place : place + 3]
    end = text.find(quote, place + 3)
    if end < 0:
        return len(text)
    if text.find("\\", place, end) < 0:
        return end + 3
    token = _TOKEN.match(text, place)
    return token.end() if token else len(text)
