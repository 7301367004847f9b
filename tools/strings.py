"""Where a Python text has comments and strings of several lines, told without tokenizing all of it."""

from __future__ import annotations

import bisect
import re

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r"|#[^\n]*",
    re.DOTALL,
)
"""A string or a comment."""


class Strings:
    """The strings of several lines in a text, and what is inside one or in a comment.

    Such a string is found by its quotes; only a line with another quote or a comment before them is tokenized. The text
    is taken to be Python: where it is not, a parser will say so.

    Args:
        text: Python source whose lines end with a line feed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._find()

    def _find(self) -> None:
        text, position = self.text, 0
        places = {quote: text.find(quote) for quote in ('"""', "'''")}
        while True:
            quote, place = min(places.items(), key=lambda pair: pair[1] if pair[1] >= 0 else len(text))
            if place < 0:
                return
            before = self._token_over(place, position)
            if before is None:
                position = self._end(quote, place)
                if "\n" in text[place:position]:
                    self._starts.append(place)
                    self._ends.append(position)
            else:
                position = before
            for other, known in places.items():
                if 0 <= known < position:
                    places[other] = text.find(other, position)

    def _token_over(self, place: int, after: int) -> int | None:
        """The end of the shorter string or the comment that holds ``place``, None where it is in neither.

        Args:
            place: an offset.
            after: an offset before it that is in no string.
        """
        text = self.text
        start = max(self._line(place), after)
        before = text[start:place]
        if '"' not in before and "'" not in before and "#" not in before:
            return None
        for token in _TOKEN.finditer(text, start):
            if token.start() >= place:
                return None
            if token.end() > place:
                return token.end()
        return None

    def _line(self, place: int) -> int:
        """Where the line of ``place`` starts, with the lines before it that it continues."""
        text = self.text
        start = text.rfind("\n", 0, place) + 1
        while start > 1 and text[start - 2] == "\\":
            start = text.rfind("\n", 0, start - 1) + 1
        return start

    def _end(self, quote: str, place: int) -> int:
        """The end of the string that starts at ``place`` with three quotes; the text's end if it has none."""
        text = self.text
        end = text.find(quote, place + 3)
        if end < 0:
            return len(text)
        if "\\" not in text[place:end]:
            return end + 3
        token = _TOKEN.match(text, place)
        return token.end() if token else len(text)

    def around(self, place: int) -> int | None:
        """The end of the string of several lines that holds ``place``, None outside of them."""
        index = bisect.bisect_right(self._starts, place) - 1
        return self._ends[index] if index >= 0 and place < self._ends[index] else None

    def in_comment(self, place: int) -> bool:
        """Whether a place outside the strings of several lines is in a comment."""
        text = self.text
        mark = text.find("#", text.rfind("\n", 0, place) + 1, place)
        if mark < 0:
            return False
        index = bisect.bisect_right(self._starts, place) - 1
        start = max(self._line(place), self._ends[index] if index >= 0 else 0)
        if mark < start:
            mark = text.find("#", start, place)
        if mark < 0:
            return False
        before = text[start:mark]
        if '"' not in before and "'" not in before:
            return True
        tokens = (token for token in _TOKEN.finditer(text, start, text.find("\n", place) + 1 or len(text)))
        return any(token.start() <= place < token.end() and token.group().startswith("#") for token in tokens)
