"""Which rules can have a finding in a file, and on which lines, told by its words before anything is parsed."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from tools.module import Interest
from tools.rules.base import PythonRule, Scope
from tools.source import SourceFile
from tools.strings import Strings

_IDENTIFIER = re.compile(r"\w+")
_BLANK = bytes(c if chr(c).isalnum() or c == ord("_") or c > 127 else 32 for c in range(256))
"""Translates what is in no identifier to spaces; bytes of other alphabets are taken for letters."""


@dataclass(frozen=True, eq=False)
class Word:
    """One of a rule's words; there is one object of each.

    Attributes:
        text: what is looked for.
        parts: whole identifiers in it, all of which a file with the word has.
        before: whether another letter may precede it.
        after: whether another letter may follow it.
        wakes: the words of which a file must have one, where that is less than the lines with this one.
    """

    text: str
    parts: frozenset[bytes]
    before: bool = False
    after: bool = False
    wakes: tuple[Word, ...] = ()

    @cached_property
    def data(self) -> bytes:
        """The text as bytes."""
        return self.text.encode()

    @cached_property
    def settled(self) -> bool:
        """Whether a file that has its part, or an identifier with its core, has the word."""
        return self.data in self.parts if self.parts else self.data == self.core

    @cached_property
    def core(self) -> bytes:
        """The most telling identifier in it, which may be a part of a longer one in a file."""
        return max(_IDENTIFIER.findall(self.text), key=_telling, default="").encode()

    def stands_in(self, identifier: bytes) -> bool:
        """Whether an identifier can be where the core is."""
        before, _, after = self.data.partition(self.core)
        if after:
            return identifier == self.core if before else identifier.endswith(self.core)
        return identifier.startswith(self.core) if before else self.core in identifier

    def find(self, text: str, start: int) -> int:
        """Offset of the word in a text, at or after ``start``; -1 if there is none."""
        place = text.find(self.text, start)
        while place >= 0:
            end = place + len(self.text)
            if self.before or not place or not _letter(text[place - 1]):
                if self.after or end == len(text) or not _letter(text[end]):
                    return place
            place = text.find(self.text, place + 1)
        return place


def _telling(identifier: bytes | str) -> tuple[bool, int]:
    return identifier not in ("torch", b"torch"), len(identifier)


def _letter(character: str) -> bool:
    return character == "_" or character.isalnum()


@lru_cache(maxsize=4096)
def word(written: str, whole: bool = True) -> Word:
    """A word as a rule writes it: see ``PythonRule.WHOLE_WORDS``."""
    if not whole:
        written = f"*{written}*"
    if written == "cuda":
        return Word("cuda", frozenset(), True, True, (Word("cuda", frozenset({b"cuda"})), word("is_cuda")))
    text = written.strip("*")
    before = written.startswith("*") or not _letter(text[0])
    after = written.endswith("*") or not _letter(text[-1])
    open_left, open_right = before and _letter(text[0]), after and _letter(text[-1])
    parts = frozenset(
        part.group().encode()
        for part in _IDENTIFIER.finditer(text)
        if not (open_left and part.start() == 0) and not (open_right and part.end() == len(text))
    )
    return Word(text, parts, before, after)


@dataclass(frozen=True, eq=False)
class _Wake:
    """What wakes one rule."""

    rule: PythonRule
    requires: frozenset[Word]
    triggers: tuple[Word, ...]
    pattern: re.Pattern[bytes] | None


class Sieve:
    """The words of some rules, ready to be looked for.

    Args:
        rules: rules for Python.
    """

    def __init__(self, rules: Sequence[PythonRule]) -> None:
        self._wakes = [
            _Wake(
                rule,
                frozenset(required(rule)),
                triggers(rule),
                re.compile(rule.PATTERN.encode(), re.MULTILINE) if rule.PATTERN else None,
            )
            for rule in rules
        ]
        words = {each for wake in self._wakes for each in (*wake.requires, *wake.triggers)}
        self._loose = [each for each in words if not each.parts and not each.wakes]
        self._known = set[bytes]()
        self._by_part: dict[bytes, list[Word]] = defaultdict(list)
        for each in words:
            for needed in each.wakes or (each,) if each.parts else each.wakes:
                self._by_part[max(needed.parts, key=_telling)].append(each)
        self._parts = set(self._by_part)

    def awake(self, data: bytes, *, quoted: bool = False) -> list[PythonRule]:
        """The rules that can have a finding in a file with these bytes.

        Args:
            data: the file.
            quoted: whether the source stands in another notation (a notebook), so that only its letters can be told.
        """
        if quoted:
            return [
                wake.rule
                for wake in self._wakes
                if all(each.data in data for each in wake.requires) and any(each.data in data for each in wake.triggers)
            ]
        present = self._present(data)
        return [
            wake.rule
            for wake in (self._wakes if present else ())
            if not present.isdisjoint(wake.triggers)
            and wake.requires <= present
            and (wake.pattern is None or wake.pattern.search(data))
        ]

    def _present(self, data: bytes) -> set[Word]:
        identifiers = set(data.translate(_BLANK).split())
        self._learn(identifiers - self._known)
        parts = self._parts & identifiers
        return {
            each for part in parts for each in self._by_part[part] if each.settled or each.wakes or each.data in data
        }

    def _learn(self, identifiers: set[bytes]) -> None:
        """Looks for words that need not be whole in identifiers; most are met in many files, and looked into once."""
        self._known |= identifiers
        joined = b" ".join(identifiers)
        for each in self._loose:
            if each.core in joined:
                for identifier in identifiers:
                    if each.stands_in(identifier):
                        self._by_part[identifier].append(each)
                        self._parts.add(identifier)


@cache
def triggers(rule: PythonRule) -> tuple[Word, ...]:
    """The words of which a file with a finding has one."""
    return tuple(word(written, rule.WHOLE_WORDS) for written in rule.TRIGGERS)


@cache
def required(rule: PythonRule) -> tuple[Word, ...]:
    """The words of which a file with a finding has each."""
    return tuple(word(written, rule.WHOLE_WORDS) for written in rule.REQUIRES)


@lru_cache(maxsize=256)
def sieve(rules: tuple[PythonRule, ...]) -> Sieve:
    """The sieve of some rules, made once."""
    return Sieve(rules)


class Reader:
    """Finds lines of interest in one file.

    Args:
        source: the file.
    """

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.strings = None if "\r" in source.text else Strings(source.text)
        self._lines: dict[tuple[Word, bool], frozenset[int]] = {}

    def awake(self, rules: Sequence[PythonRule]) -> list[PythonRule]:
        """Those of the rules that have a word, and a match of their pattern, in code."""
        return [
            rule
            for rule in rules
            if any(self._has(each, rule) for each in triggers(rule))
            and all(self._has(each, rule) for each in required(rule))
            and self._matches(rule)
        ]

    def interest(self, rules: Sequence[PythonRule]) -> Interest:
        """What matters to rules that are awake."""
        words = {(each, rule.IN_STRINGS) for rule in rules for each in triggers(rule)}
        words |= {(each, False) for each in (*_CONTEXT, *_other_names(self.source.text, [each for each, _ in words]))}
        lines = set[int]().union(*(self._of(*each) for each in words))
        classes = {
            line
            for rule in rules
            if rule.SCOPE is Scope.CLASS
            for each in triggers(rule)
            for line in self._of(each, rule.IN_STRINGS)
        }
        whole = any(rule.SCOPE is Scope.FILE for rule in rules)
        return Interest(sorted(lines), sorted(classes), whole, self.strings)

    def _has(self, each: Word, rule: PythonRule) -> bool:
        return any(self._of(needed, rule.IN_STRINGS) for needed in each.wakes or (each,))

    def _of(self, each: Word, in_strings: bool) -> frozenset[int]:
        """Lines with a word."""
        key = each, in_strings
        if key not in self._lines:
            self._lines[key] = frozenset(self._find(each, None if in_strings else self.strings))
        return self._lines[key]

    def _find(self, each: Word, passed_over: Strings | None) -> Iterator[int]:
        text, starts = self.source.text, self.source.starts
        place = each.find(text, 0)
        while place >= 0:
            after = passed_over.around(place) if passed_over else None
            if after is None:
                line = bisect.bisect_right(starts, place)
                if passed_over is None or not passed_over.in_comment(place):
                    yield line
                if line == len(starts):
                    return
                after = starts[line]
            place = each.find(text, after)

    def _matches(self, rule: PythonRule) -> bool:
        if not rule.PATTERN:
            return True
        strings = None if rule.IN_STRINGS else self.strings
        for match in _compiled(rule.PATTERN).finditer(self.source.text):
            place = match.start()
            if strings is None or (strings.around(place) is None and not strings.in_comment(place)):
                return True
        return False


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_CONTEXT = (Word("current_accelerator", frozenset(), False, False),)
"""What fixes look for at module level."""


def _other_names(text: str, words: Iterable[Word]) -> list[Word]:
    """What ``import ... as`` calls a thing with one of the words in its name (``GradScaler as Scaler``)."""
    found = set[str]()
    place = text.find(" as ")
    while place >= 0:
        before, after = _LAST.search(text[max(0, place - 60) : place]), _IDENTIFIER.match(text, place + 4)
        if before and after and any(each.text in before.group() for each in words):
            found.add(after.group())
        place = text.find(" as ", place + 4)
    return [Word(name, frozenset(), False, False) for name in found]


_LAST = re.compile(r"(?<!\w)\w+$")
