"""Finds knowledge entries and rules by plain words: a lexical ranking that needs no model and no network."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Literal

from pydantic import BaseModel, Field

from tools.knowledge import Entry, entries
from tools.rules import all_rules

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SATURATION, _LENGTH = 1.2, 0.6
_WEIGHTS = {"title": 4, "symptom": 2, "cause": 2, "remedy": 1}
_COMMON = frozenset(
    "a an and are as at be but by can do does for from get gets has have how i if in is it its me my no not of on or so"
    " that the then there this to was what when where which why will with you your error fails failed problem".split()
)
_ALIKE = tuple(
    tuple(line.split())
    for line in """
gpu cuda nvidia nvcc
tpu libtpu
oom memory
hang stuck freeze wait forever
slow recompile recompilation
bf16 bfloat16
fp16 float16 half
fp32 float32
fp64 float64 double
nan inf finite
amp autocast mixed
ddp distributed
nccl gloo collective
checkpoint pickle load restore
random seed generator
op operator kernel
crash abort die segfault
loss losses
launch spawn fork
dataloader loader
quantise quantize quantised quantized 8bit 4bit
rank process
""".strip().splitlines()
)
_ENDINGS = tuple(
    tuple(pair.split("-"))
    for pair in "ies-y sses-ss ations-ate ation-ate ings- ing- edly- ed- ers- er- ly- es- s- e-".split()
)


class SearchHit(BaseModel):
    """An entry or a rule that fits the words."""

    kind: Literal["entry", "rule"]
    id: str
    title: str
    score: float = Field(description="relative; the best hit has 1")
    cause: str = ""
    remedy: str = ""
    rules: list[str] = []


class SearchOutput(BaseModel):
    """Hits, the best first."""

    query: str
    hits: list[SearchHit] = []


def search(query: str, limit: int = 5, *, rules: bool = True, known: Sequence[Entry] | None = None) -> SearchOutput:
    """Rank what is known against plain words or a pasted message.

    Args:
        query: The words.
        limit: Most hits.
        rules: Whether the scanner's rules are looked at besides the knowledge entries.
        known: Entries to choose from; those of the product by default.
    """
    documents = _product(rules) if known is None else _index(tuple(known), rules)
    wanted = Counter(terms(query))
    scored = [(documents.score(number, wanted), number) for number in range(len(documents.hits))]
    best = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], documents.hits[pair[1]].id))
    top = best[0][0] if best else 1.0
    found = [
        documents.hits[number].model_copy(update={"score": round(score / top, 3)}) for score, number in best[:limit]
    ]
    return SearchOutput(query=query, hits=found)


def terms(text: str) -> list[str]:
    """The words of a text as the index has them: whole, in parts, without endings, and what they are alike to."""
    found: list[str] = []
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PARTS.findall(word)]
        for part in dict.fromkeys([word.lower(), *parts]):
            if part not in _COMMON and (len(part) > 1 or part.isdigit()):
                found.append(_canonical(part))
    return found


@cache
def _canonical(word: str) -> str:
    stem = _stem(word)
    return _twins().get(word) or _twins().get(stem) or stem


@cache
def _twins() -> dict[str, str]:
    return {form: group[0] for group in _ALIKE for word in group for form in (word, _stem(word))}


def _stem(word: str) -> str:
    for ending, left in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word[: len(word) - len(ending)] + left
    return word


class _Index:
    def __init__(self, hits: list[SearchHit], texts: list[Counter[str]]) -> None:
        self.hits = hits
        self._texts = texts
        self._sizes = [sum(text.values()) for text in texts]
        self._mean = sum(self._sizes) / max(len(texts), 1)
        self._present = Counter(term for text in texts for term in text)

    def score(self, number: int, wanted: Counter[str]) -> float:
        """Okapi's weighting: rare words count more, a word said often counts hardly more than once."""
        text, total = self._texts[number], 0.0
        scale = _SATURATION * (1 - _LENGTH + _LENGTH * self._sizes[number] / self._mean)
        for term in wanted:
            if count := text[term]:
                rarity = math.log(1 + (len(self._texts) - self._present[term] + 0.5) / (self._present[term] + 0.5))
                total += rarity * count * (_SATURATION + 1) / (count + scale)
        return total


@cache
def _product(rules: bool) -> _Index:
    return _index(entries(), rules)


def _index(known: tuple[Entry, ...], rules: bool) -> _Index:
    hits = [_entry_hit(entry) for entry in known]
    texts = [_entry_text(entry) for entry in known]
    for rule in all_rules() if rules else ():
        text = inspect.cleandoc(type(rule).__doc__ or "")
        hits.append(SearchHit(kind="rule", id=rule.ID, title=rule.MESSAGE, score=0, cause=text, rules=[rule.ID]))
        texts.append(_weighed(title=f"{rule.NAME} {rule.MESSAGE}", cause=text))
    return _Index(hits, texts)


def _entry_hit(entry: Entry) -> SearchHit:
    return SearchHit(
        kind="entry", id=entry.id, title=entry.title, score=0, cause=entry.cause, remedy=entry.remedy,
        rules=list(entry.rules),
    )  # fmt: skip


def _entry_text(entry: Entry) -> Counter[str]:
    patterns = " ".join(pattern for symptom in entry.symptoms for pattern in symptom.places().values())
    plain = re.sub(r"\\[a-zA-Z]|\[\^[^\]]*\]|[\\^$*+?()|\[\]{}]", " ", patterns)
    return _weighed(title=f"{entry.id} {entry.title}", symptom=plain, cause=entry.cause, remedy=entry.remedy)


def _weighed(**fields: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for name, text in fields.items():
        for term in terms(text):
            counted[term] += _WEIGHTS[name]
    return counted
