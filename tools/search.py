"""Finds knowledge entries and rules by plain words: a lexical ranking, joined with nearness in meaning where installed.

Neither needs a network. The ranking by meaning is the optional extra `search`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Literal

from pydantic import BaseModel, Field

from tools import embeddings
from tools.knowledge import Entry, entries
from tools.rules import all_rules

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SATURATION, _LENGTH = 1.2, 0.6
_NEARNESS = 0.6
"""Weight of nearness beside the lexical score, whose best is 1: chosen on the questions that were there before it."""
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


class Ranking(StrEnum):
    """How hits were ranked."""

    LEXICAL = "lexical"
    EMBEDDINGS = "embeddings"
    BOTH = "lexical and embeddings"


class SearchOutput(BaseModel):
    """Hits, the best first."""

    query: str
    ranking: Ranking = Field(default=Ranking.LEXICAL, description="what ranked them; meaning needs the extra `search`")
    hits: list[SearchHit] = []


def search(
    query: str,
    limit: int = 5,
    *,
    rules: bool = True,
    known: Sequence[Entry] | None = None,
    ranking: Ranking | None = None,
) -> SearchOutput:
    """Rank what is known against plain words or a pasted message.

    Args:
        query: The words.
        limit: Most hits.
        rules: Whether the scanner's rules are looked at besides the knowledge entries.
        known: Entries to choose from; those of the product by default.
        ranking: How to rank; by default by both where embeddings are installed, by words otherwise.
    """
    documents = _product(rules) if known is None else _index(tuple(known), rules)
    words = documents.by_words(query)
    # Words that nothing has are a question about something else: nearness alone would answer it with noise.
    meaning = documents.by_meaning(query) if words and ranking is not Ranking.LEXICAL else None
    if meaning is None:
        used, scored = Ranking.LEXICAL, words
    elif ranking is Ranking.EMBEDDINGS:
        used, scored = ranking, meaning
    else:
        used, scored = Ranking.BOTH, _joined(words, meaning)
    best = sorted(scored.items(), key=lambda pair: (-pair[1], documents.hits[pair[0]].id))[:limit]
    top = best[0][1] if best else 1.0
    found = [documents.hits[number].model_copy(update={"score": round(score / top, 3)}) for number, score in best]
    return SearchOutput(query=query, ranking=used, hits=found)


def _joined(words: dict[int, float], meaning: dict[int, float]) -> dict[int, float]:
    """The share of the best lexical score, and the nearness; ranks alone joined worse on the questions."""
    top = max(words.values())
    return {number: words.get(number, 0.0) / top + _NEARNESS * near for number, near in meaning.items()}


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
    def __init__(self, hits: list[SearchHit], texts: list[Counter[str]], said: list[str]) -> None:
        self.hits = hits
        pieces = [(n, part) for n, hit in enumerate(hits) for part in _pieces(hit, said[n])]
        self._owners = [number for number, _ in pieces]
        self._pieces = tuple(part for _, part in pieces)
        self._texts = texts
        self._sizes = [sum(text.values()) for text in texts]
        self._mean = sum(self._sizes) / max(len(texts), 1)
        self._present = Counter(term for text in texts for term in text)

    def by_words(self, query: str) -> dict[int, float]:
        """Scores by shared words, of those that share any."""
        wanted = Counter(terms(query))
        scores = {number: self._score(number, wanted) for number in range(len(self.hits))}
        return {number: score for number, score in scores.items() if score > 0}

    def by_meaning(self, query: str) -> dict[int, float] | None:
        """Nearness in meaning of each one's nearest part; None where embeddings are not installed."""
        nearness = embeddings.similarities(query, self._pieces)
        if nearness is None:
            return None
        found = dict.fromkeys(self._owners, -1.0)
        for owner, near in zip(self._owners, nearness, strict=True):
            found[owner] = max(found[owner], near)
        return found

    def _score(self, number: int, wanted: Counter[str]) -> float:
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
    said = [_symptoms(entry) for entry in known]
    for rule in all_rules() if rules else ():
        text = inspect.cleandoc(type(rule).__doc__ or "")
        hits.append(SearchHit(kind="rule", id=rule.ID, title=rule.MESSAGE, score=0, cause=text, rules=[rule.ID]))
        texts.append(_weighed(title=f"{rule.NAME} {rule.MESSAGE}", cause=text))
        said.append("")
    return _Index(hits, texts, said)


def _pieces(hit: SearchHit, said: str) -> list[str]:
    """Parts of a document that are compared one by one: the vector of a long text is near to everything."""
    return [part for part in (hit.title, hit.cause, f"{hit.title}. {hit.cause}", said) if part.strip()]


def _entry_hit(entry: Entry) -> SearchHit:
    return SearchHit(
        kind="entry", id=entry.id, title=entry.title, score=0, cause=entry.cause, remedy=entry.remedy,
        rules=list(entry.rules),
    )  # fmt: skip


def _symptoms(entry: Entry) -> str:
    """The words of an entry's patterns."""
    patterns = " ".join(pattern for symptom in entry.symptoms for pattern in symptom.places().values())
    return re.sub(r"\\[a-zA-Z]|\[\^[^\]]*\]|[\\^$*+?()|\[\]{}]", " ", patterns)


def _entry_text(entry: Entry) -> Counter[str]:
    title = f"{entry.id} {entry.title}"
    return _weighed(title=title, symptom=_symptoms(entry), cause=entry.cause, remedy=entry.remedy)


def _weighed(**fields: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for name, text in fields.items():
        for term in terms(text):
            counted[term] += _WEIGHTS[name]
    return counted
