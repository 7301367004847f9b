"""Exact replacements in a text: every character outside an edited span survives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``text[start:end]`` by ``replacement``; an insertion has ``start == end``."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True)
class Fix:
    """Edits that belong together: all of them are applied or none."""

    edits: tuple[Edit, ...]
    note: str | None = None


def overlaps(first: Edit, second: Edit) -> bool:
    """Whether two edits cannot both be applied.

    Two insertions at one place are compatible (they are applied in the order of their text), and so is
    an insertion at the border of a replacement.
    """
    if first == second:
        return False
    if first.start == first.end or second.start == second.end:
        return first.start < second.start < first.end or second.start < first.start < second.end
    return first.start < second.end and second.start < first.end


def conflict(first: Edit, second: Edit) -> bool:
    """Whether edits of two different fixes must not be applied in one pass.

    Each fix was made for the text as it stands, so what touches may not be what it was made for: an argument inserted
    where another fix inserts one lacks its comma, a condition put behind an expression may bind to half of it. Equal
    edits are shared where one does for both: a replacement, or whole lines such as an import.
    """
    if first == second:
        return first.start == first.end and not first.replacement.endswith("\n")
    apart = first.end < second.start or second.end < first.start
    return not apart and (overlaps(first, second) or not (_is_lines(first) or _is_lines(second)))


def _is_lines(edit: Edit) -> bool:
    return edit.start == edit.end and edit.replacement.endswith("\n")


def choose(fixes: Iterable[Fix]) -> list[Fix]:
    """Picks the fixes that can be applied together, deterministically.

    Fixes are taken from the innermost (shortest) outwards and, among equals, by position, so that the result does not
    depend on the order in which rules reported them. The rest is found again on the next pass.
    """
    chosen: list[Fix] = []
    taken: list[Edit] = []
    for fix in sorted(set(fixes), key=lambda f: (sum(e.end - e.start for e in f.edits), f.edits)):
        if not any(conflict(edit, other) for edit in fix.edits for other in taken):
            chosen.append(fix)
            taken.extend(fix.edits)
    return chosen


def apply(text: str, edits: Sequence[Edit], *, words: bool = False) -> str:
    """Applies non-overlapping edits.

    Args:
        text: What is edited.
        edits: The edits, in any order.
        words: Whether a blank keeps a name from growing into the word beside it: ``return"cuda"`` has none.

    Raises:
        ValueError: if two of them overlap or one lies outside the text.
    """
    pieces: list[str] = []
    position = 0
    for edit in sorted(set(edits)):
        if edit.start < position or edit.end < edit.start or edit.end > len(text):
            raise ValueError(f"edit {edit} does not fit at {position}")
        new = edit.replacement
        if words and edit.start < edit.end:
            new = f"{' ' if _joins(text[edit.start - 1 : edit.start] + new[:1]) else ''}{new}"
            new = f"{new}{' ' if _joins(new[-1:] + text[edit.end : edit.end + 1]) else ''}"
        pieces += [text[position : edit.start], new]
        position = edit.end
    return "".join([*pieces, text[position:]])


def _joins(pair: str) -> bool:
    return len(pair) == 2 and all(character.isalnum() or character == "_" for character in pair)
