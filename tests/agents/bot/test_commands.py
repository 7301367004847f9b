"""The first line of a comment, read into a command or refused with words for the person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.bot.commands import Command, CommandError, parse, shown


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("/torchtpu migrate", Command(name="migrate")),
        ("/torchtpu", Command(name="help")),
        ("  /torchtpu HELP  \nmore", Command(name="help")),
        (
            '/torchtpu migrate --entry "python train.py --x" -e b --steps=5 --no-verify --unsafe-fixes --dry-run',
            Command(
                name="migrate", entries=["python train.py --x", "b"], steps=5, verify=False, unsafe_fixes=True,
                dry_run=True,
            ),
        ),
        (
            "/torchtpu scan --select tpu101,TPU2 --ignore TPU9",
            Command(name="scan", select=["TPU101", "TPU2"], ignore=["TPU9"]),
        ),
        ("/torchtpu profile v6e-8", Command(name="profile", subject="v6e-8", target="v6e-8")),
        ("/torchtpu fix train.py:3", Command(name="fix", subject="train.py:3")),
        ("/torchtpu fix #2 --unsafe-fixes", Command(name="fix", subject="#2", unsafe_fixes=True)),
        ("/torchtpu explain TPU101", Command(name="explain", subject="TPU101")),
    ],
)  # fmt: skip
def test_commands(body: str, wanted: Command) -> None:
    assert parse(body) == wanted


@pytest.mark.parametrize(
    "body", ["", "hello", "see /torchtpu migrate", "\n/torchtpu migrate", "/torchtpux", "> /torchtpu scan"]
)
def test_other_comments_are_not_for_us(body: str) -> None:
    assert parse(body) is None


@pytest.mark.parametrize(
    "body",
    [
        "/torchtpu rm -rf /", "/torchtpu migrate; rm -rf /", "/torchtpu migrate $(id)", "/torchtpu scan `id`",
        "/torchtpu migrate --python /tmp/x", "/torchtpu migrate --no-sandbox", "/torchtpu migrate --out=/etc/passwd",
        "/torchtpu migrate --steps -1", "/torchtpu migrate --steps 9999999", "/torchtpu migrate --entry",
        "/torchtpu scan --select ../../x", "/torchtpu profile ../../etc", "/torchtpu profile", "/torchtpu fix",
        "/torchtpu fix a b", "/torchtpu verify --target v6e-8", '/torchtpu migrate --entry "x',
        "/torchtpu " + "a" * 3000,
        "/torchtpu migrate --dry-run=yes", "/torchtpu fix \x00", "/torchtpu migrate --verify-steps 0",
    ],
)  # fmt: skip
def test_what_is_refused(body: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse(body)
    assert "$(" not in str(refused.value) and ";" not in str(refused.value)


@given(st.text(max_size=200))
def test_any_comment_is_a_command_a_refusal_or_nothing(text: str) -> None:
    for body in (text, f"/torchtpu {text}", f"/torchtpu migrate {text}"):
        try:
            found = parse(body)
        except CommandError:
            continue
        assert found is None or isinstance(found, Command)


@given(st.text(max_size=200))
def test_words_of_a_person_mention_nobody_when_they_are_shown(text: str) -> None:
    assert not set(shown(text)) & set("@`<>[]\n|")


@given(
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20), max_size=3),
    st.integers(0, 999_999),
)
def test_what_is_written_is_what_is_read(entries: list[str], steps: int) -> None:
    words = " ".join(f"--entry '{entry}'" for entry in entries)
    found = parse(f"/torchtpu migrate {words} --steps {steps}")
    assert found is not None and (found.entries, found.steps) == (entries, steps)
