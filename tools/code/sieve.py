"""Which rules can have a finding in a file, and on which lines, told by its words before anything is parsed."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from tools.code.module import Interest
from tools.code.source import SourceFile
from tools.rules.base import PythonRule, Scope

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
        return bool(self.wakes) or (self.data in self.parts if self.parts else self.data == self.core)

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


@cache
def triggers(rule: PythonRule) -> tuple[Word, ...]:
    """The words of which a file with a finding has one."""
    return tuple(word(written, rule.WHOLE_WORDS) for written in rule.TRIGGERS)


@cache
def required(rule: PythonRule) -> tuple[tuple[Word, ...], ...]:
    """Groups of words, of each of which a file with a finding has one."""
    return tuple(tuple(word(each, rule.WHOLE_WORDS) for each in written.split("|")) for written in rule.REQUIRES)


@dataclass(frozen=True, eq=False)
class _Wake:
    """What wakes one rule; sets of words are numbers with a bit for each."""

    rule: PythonRule
    triggers: int
    required: tuple[int, ...]
    words: int
    pattern: re.Pattern[bytes] | None

    def by(self, present: int) -> bool:
        return bool(present & self.triggers) and all(present & group for group in self.required)


@dataclass(frozen=True)
class Sight:
    """What a file's bytes tell.

    Attributes:
        rules: those that can have a finding in it.
        words: those of the rules' words that it has.
    """

    rules: list[PythonRule]
    words: frozenset[Word]


class Sieve:
    """The words of some rules, ready to be looked for.

    Args:
        rules: rules for Python.
    """

    def __init__(self, rules: Sequence[PythonRule]) -> None:
        self._words = list(dict.fromkeys(each for rule in rules for group in _groups(rule) for each in group))
        self._bits = {each: 1 << number for number, each in enumerate(self._words)}
        self._wakes = [self._wake(rule) for rule in rules]
        self._uncertain = self._set(each for each in self._words if not each.settled)
        self._loose = [each for each in self._words if not each.parts and not each.wakes]
        self._met = set[bytes]()
        self._by_part: dict[bytes, int] = {}
        for each in self._words:
            for needed in each.wakes or ((each,) if each.parts else ()):
                self._enter(max(needed.parts, key=_telling), each)
        self._parts = set(self._by_part)

    def _wake(self, rule: PythonRule) -> _Wake:
        first, *others = (self._set(group) for group in _groups(rule))
        words = self._set(each for group in _groups(rule) for each in group)
        pattern = re.compile(rule.PATTERN.encode(), re.MULTILINE) if rule.PATTERN else None
        return _Wake(rule, first, tuple(others), words, pattern)

    def _set(self, words: Iterable[Word]) -> int:
        found = 0
        for each in words:
            found |= self._bits[each]
        return found

    def _enter(self, part: bytes, each: Word) -> None:
        self._by_part[part] = self._by_part.get(part, 0) | self._bits[each]

    def look(self, data: bytes, *, quoted: bool = False) -> Sight:
        """What can be seen in a file with these bytes.

        Where a rule without a pattern is awake, the patterns of the others are left to ``Reader``.

        Args:
            data: the file.
            quoted: whether the source stands in another notation (a notebook), so that only its letters can be told.
        """
        if quoted:
            present = self._set(each for each in self._words if each.data in data)
            return self._sight([wake for wake in self._wakes if wake.by(present)], present)
        present = self._present(data)
        awake = [wake for wake in self._wakes if present & wake.triggers and wake.by(present)] if present else []
        present = self._verified(awake, present, data)
        awake = [wake for wake in awake if wake.by(present)]
        if all(wake.pattern for wake in awake):
            awake = [wake for wake in awake if wake.pattern and wake.pattern.search(data)]
        return self._sight(awake, present)

    def _sight(self, awake: list[_Wake], present: int) -> Sight:
        words = 0
        for wake in awake:
            words |= wake.words
        return Sight([wake.rule for wake in awake], frozenset(self._members(words & present)))

    def _members(self, words: int) -> Iterator[Word]:
        while words:
            bit = words & -words
            words ^= bit
            yield self._words[bit.bit_length() - 1]

    def _present(self, data: bytes) -> int:
        """The words that the identifiers of a file allow."""
        identifiers = set(data.translate(_BLANK).split())
        self._meet(identifiers - self._met)
        present = 0
        for part in self._parts & identifiers:
            present |= self._by_part[part]
        return present

    def _verified(self, awake: list[_Wake], present: int, data: bytes) -> int:
        """The words without those that are more than an identifier and are not there, as far as these rules ask."""
        asked = 0
        for wake in awake:
            asked |= wake.words
        for each in self._members(asked & present & self._uncertain):
            if each.data not in data:
                present ^= self._bits[each]
        return present

    def _meet(self, identifiers: set[bytes]) -> None:
        """Looks for words that need not be whole in identifiers; most are met in many files, and looked into once."""
        self._met |= identifiers
        joined = b" ".join((b"", *identifiers, b""))
        for each in self._loose:
            core = each.core
            place = joined.find(core)
            while place >= 0:
                end = joined.find(b" ", place)
                identifier = joined[joined.rfind(b" ", 0, place) + 1 : end]
                if each.stands_in(identifier):
                    self._enter(identifier, each)
                    self._parts.add(identifier)
                place = joined.find(core, end)


def _groups(rule: PythonRule) -> tuple[tuple[Word, ...], ...]:
    """Groups of words, of each of which a file that wakes the rule has one."""
    return (triggers(rule), *required(rule))


@lru_cache(maxsize=256)
def sieve(rules: tuple[PythonRule, ...]) -> Sieve:
    """The sieve of some rules, made once."""
    return Sieve(rules)


class Reader:
    """Finds lines of interest in one file; comments and strings of several lines are passed over.

    Args:
        source: the file.
        words: those it may have; any if None.
    """

    def __init__(self, source: SourceFile, words: frozenset[Word] | None = None) -> None:
        self.source = source
        self._words = words
        self._there: dict[Word, bool] = {}

    def awake(self, rules: Sequence[PythonRule]) -> list[PythonRule]:
        """Those of the rules that have their words, and a match of their pattern, in code."""
        return [
            rule for rule in rules if all(any(map(self._has, group)) for group in _groups(rule)) and self._fits(rule)
        ]

    def _has(self, each: Word) -> bool:
        if not self._may_have(each):
            return False
        if each not in self._there:
            self._there[each] = any(needed.find(self.source.code, 0) >= 0 for needed in each.wakes or (each,))
        return self._there[each]

    def _may_have(self, each: Word) -> bool:
        return self._words is None or each in self._words

    def _fits(self, rule: PythonRule) -> bool:
        return not rule.PATTERN or _compiled(rule.PATTERN).search(self.source.code) is not None

    def interest(self, rules: Sequence[PythonRule]) -> Interest:
        """What matters to rules that are awake."""
        words = {each for rule in rules for each in triggers(rule) if self._may_have(each)}
        lines = {each: list(self._lines(each)) for each in words}
        classes = lines.keys() & {each for rule in rules if rule.SCOPE is Scope.CLASS for each in triggers(rule)}
        others = [line for each in (_CONTEXT, *_other_names(self.source.code, words)) for line in self._lines(each)]
        return Interest(
            sorted({*others, *(line for found in lines.values() for line in found)}),
            sorted({line for each in classes for line in lines[each]}),
            any(rule.SCOPE is Scope.FILE for rule in rules),
        )

    def _lines(self, each: Word) -> Iterator[int]:
        """Lines with a word."""
        code, starts = self.source.code, self.source.starts
        place = each.find(code, 0)
        while place >= 0:
            line = bisect.bisect_right(starts, place)
            yield line
            place = each.find(code, starts[line]) if line < len(starts) else -1


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_CONTEXT = Word("current_accelerator", frozenset(), False, False)
"""What fixes look for at module level."""


def _other_names(code: str, words: Iterable[Word]) -> list[Word]:
    """What ``import ... as`` calls a thing with one of the words in its name (``GradScaler as Scaler``)."""
    found = set[str]()
    place = code.find(" as ")
    while place >= 0:
        before, after = _LAST.search(code[max(0, place - 60) : place]), _IDENTIFIER.match(code, place + 4)
        if before and after and any(each.text in before.group() for each in words):
            found.add(after.group())
        place = code.find(" as ", place + 4)
    return [Word(name, frozenset(), False, False) for name in found]


_LAST = re.compile(r"(?<!\w)\w+$")
