"""Every character outside the edited spans survives, in any order of edits."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.code.edits import Edit, Fix, apply, choose, conflict, overlaps


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(st.text(max_size=40))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [Edit(a, b, draw(st.text(max_size=5))) for a, b in pairs]


@given(edited(), st.randoms())
def test_only_spans_change(case: tuple[str, list[Edit]], shuffle: random.Random) -> None:
    text, edits = case
    if any(overlaps(a, b) for a in edits for b in edits):
        return
    wanted, position = "", 0
    for edit in sorted(set(edits)):
        wanted += text[position : edit.start] + edit.replacement
        position = edit.end
    mixed = edits[:]
    shuffle.shuffle(mixed)
    assert apply(text, mixed) == wanted + text[position:]


@given(st.text(max_size=20))
def test_no_edits_no_change(text: str) -> None:
    assert apply(text, []) == text


@pytest.mark.parametrize("bad", [Edit(3, 9, ""), Edit(2, 1, ""), Edit(-1, 0, "")])
def test_edits_outside_the_text_are_refused(bad: Edit) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        apply("abcd", [bad])


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        apply("abcd", [Edit(0, 3, ""), Edit(2, 4, "")])


fixes = st.lists(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), st.sampled_from("xy")), min_size=1, max_size=3),
    max_size=6,
).map(lambda all_: [Fix(tuple(sorted(Edit(a, a + n, r) for a, n, r in one))) for one in all_])


@given(fixes, st.randoms())
def test_choice_does_not_depend_on_order(candidates: list[Fix], shuffle: random.Random) -> None:
    sound = [f for f in candidates if not any(overlaps(a, b) for a in f.edits for b in f.edits)]
    mixed = sound[:]
    shuffle.shuffle(mixed)
    chosen = choose(sound)
    assert choose(mixed) == chosen
    assert bool(chosen) == bool(sound)
    apply("." * 30, [edit for fix in chosen for edit in fix.edits])


def test_equal_edits_of_two_fixes_are_applied_once() -> None:
    shared = Edit(0, 0, "import torch\n")
    chosen = choose([Fix((shared, Edit(2, 3, "a"))), Fix((shared, Edit(5, 6, "b")))])
    assert apply("0123456", [e for f in chosen for e in f.edits]) == "import torch\n01a34b6"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Edit(4, 4, "'cuda'"), Edit(4, 4, "enabled=True"), False),  # two arguments, no comma
        (Edit(4, 4, ")"), Edit(4, 4, ")"), False),  # two brackets, not one
        (Edit(2, 6, "a if b else c"), Edit(6, 6, " if d else e"), False),
        (Edit(2, 4, "a"), Edit(4, 6, "b"), False),
        (Edit(2, 4, "a"), Edit(3, 6, "b"), False),
        (Edit(2, 4, "a"), Edit(2, 4, "a"), True),
        (Edit(0, 0, "import torch\n"), Edit(0, 0, "import torch\n"), True),
        (Edit(0, 0, "import os\n"), Edit(0, 0, "import torch\n"), True),
        (Edit(0, 0, "import os\n"), Edit(0, 3, "a"), True),
        (Edit(2, 3, "a"), Edit(4, 6, "b"), True),
    ],
)
def test_what_two_fixes_may_do_in_one_pass(first: Edit, second: Edit, together: bool) -> None:
    assert conflict(first, second) is conflict(second, first) is not together
    assert (len(choose([Fix((first,)), Fix((second,))])) == 2) is (together and first != second)
