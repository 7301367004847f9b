"""Signatures, bodies, names, settings, events: what comes from outside and is taken or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.bot import bodies, names, repository_settings
from agents.bot.events import MARK, BadEvent, job_of
from agents.bot.findings import block, text
from agents.bot.repository_settings import SettingsError
from agents.bot.settings import configured
from agents.bot.signature import is_signed, sign
from agents.bot.tasks.fix import applied
from tools.errors import UserError
from tools.findings import Replacement

SHA = "a" * 40


@given(st.binary(max_size=200))
def test_a_signature_holds_for_its_body_and_secret_alone(body: bytes) -> None:
    right = sign("secret", body)
    assert is_signed("secret", body, right)
    assert not is_signed("secret", body + b"x", right)
    assert not is_signed("other", body, right)
    assert not is_signed("secret", body, right[:-1])


@pytest.mark.parametrize("signature", [None, "", "sha1=abc", "sha256=", "sha256=\udcff", "é", "SHA256=00"])
def test_other_signatures_are_wrong(signature: str | None) -> None:
    assert not is_signed("secret", b"body", signature)
    assert not is_signed("", b"body", sign("", b"body"))


def test_depth_counts_outside_of_texts() -> None:
    assert bodies.parse(json.dumps({"a": '[{"' * 500}).encode())
    for deep in (b'{"a":' * 100_000, b'{"a":' + b"[" * 65 + b"]" * 65 + b"}", b'{"a":' + b"[" * 10**6):
        with pytest.raises(bodies.BadBody):
            bodies.parse(deep)
    for wrong in (b"", b"[]", b"1", b"{", b"\xff"):
        with pytest.raises(bodies.BadBody):
            bodies.parse(wrong)


def test_a_long_body_is_not_read_to_its_end() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1000
            yield b"x" * 1000

    for announced in (None, "5", "99999999999999999999", "-1", "x"):
        with pytest.raises(bodies.BadBody) as refused:
            asyncio.run(bodies.read(endless(), announced, most=5000))
        assert refused.value.status == 413
    assert read <= 2 * 6000


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "../x", "x.git", "-x", "", "a b", "a\n", "a;b", "$(id)", "é", "x" * 101]
)
def test_what_is_no_name_of_a_repository(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        names.repository(name)


@pytest.mark.parametrize(
    "name",
    ["", "-x", "--upload-pack=id", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a b", "a~", "a^", "a:b", "a?",
     "a*", "a[", "a\\b", "@", "a@{b", "a\x7f", "x" * 300, "refs/heads/../../etc"],
)  # fmt: skip
def test_what_is_no_name_of_a_branch(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        names.branch(name)


def test_names_that_are_taken() -> None:
    assert names.branch("feature/x-1_y.z") and names.repository("my.repo_1") and names.owner("team-1")


ENVIRONMENT = {
    "TORCHTPU_GITHUB_APP_ID": "1", "TORCHTPU_GITHUB_PRIVATE_KEY": "key", "TORCHTPU_GITHUB_WEBHOOK_SECRET": "s" * 16,
}  # fmt: skip


def test_settings_from_the_environment() -> None:
    assert configured({}) is None
    settings = configured(ENVIRONMENT)
    assert settings is not None and settings.clone_url == "https://github.com"
    assert "ssss" not in repr(settings) and "key" not in repr(settings.private_key)
    own = configured({**ENVIRONMENT, "TORCHTPU_GITHUB_API_URL": "https://git.example.org/api/v3"})
    assert own is not None and own.clone_url == "https://git.example.org"


@pytest.mark.parametrize(
    "address",
    ["http://169.254.169.254/latest", "http://example.org", "ftp://example.org", "file:///etc/passwd", "https://",
     "https://user:password@example.org", "https://example.org/?x", "https://example.org#x", "https://a b",
     "http://127.0.0.1.example.org", "https://example.org\\@evil", "https://example.org:99999", "//example.org"],
)  # fmt: skip
def test_addresses_that_would_send_tokens_elsewhere(address: str) -> None:
    with pytest.raises(UserError):
        configured({**ENVIRONMENT, "TORCHTPU_GITHUB_API_URL": address})


def test_a_wrong_setting_is_named_and_not_repeated() -> None:
    with pytest.raises(UserError) as refused:
        configured({**ENVIRONMENT, "TORCHTPU_GITHUB_WEBHOOK_SECRET": "short-secret"})
    assert "WEBHOOK_SECRET" in refused.value.message and "short-secret" not in refused.value.message
    with pytest.raises(UserError, match="BOGUS"):
        configured({**ENVIRONMENT, "TORCHTPU_GITHUB_BOGUS": "1"})


def comment(**changes: Any) -> dict[str, Any]:
    """A delivery with a command, its parts changed."""
    base: dict[str, Any] = {
        "action": "created", "installation": {"id": 1}, "sender": {"login": "ann", "type": "User"},
        "repository": {"name": "project", "owner": {"login": "team"}, "default_branch": "main"},
        "issue": {"number": 3},
        "comment": {"id": 5, "body": "/torchtpu scan", "user": {"login": "ann", "type": "User"}},
    }  # fmt: skip
    return {**base, **changes}


def test_a_comment_is_a_job_whose_id_is_the_deliverys() -> None:
    job = job_of("issue_comment", "d-1", comment(), "torchtpu-agent")
    assert job is not None and (job.id, job.place, job.number, job.comment) == ("d-1", "team/project", 3, 5)
    assert job_of("issue_comment", "d-1", comment(action="edited"), "x") is None
    assert job_of("star", "d-1", {"action": "created"}, "x") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": {"login": "torchtpu-agent[bot]", "type": "Bot"}},
        {"sender": {"login": "x[bot]", "type": "User"}},
        {"comment": {"id": 5, "body": "/torchtpu scan", "user": {"login": "a", "type": "Bot"}}},
        {"comment": {"id": 5, "body": "/torchtpu scan", "user": {"login": "a"}, "performed_via_github_app": {"id": 1}}},
        {"comment": {"id": 5, "body": f"/torchtpu scan\n<!-- {MARK}x -->", "user": {"login": "a"}}},
    ],
)
def test_bots_and_our_own_texts_are_not_answered(changes: dict[str, Any]) -> None:
    assert job_of("issue_comment", "d-1", comment(**changes), "torchtpu-agent") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": {"name": "../../etc", "owner": {"login": "team"}}},
        {"repository": {"name": "x", "owner": {"login": "team/../.."}}},
        {"repository": {"name": "x", "owner": {"login": "team"}, "default_branch": "--upload-pack=id"}},
        {"sender": {"login": "a/../b"}}, {"issue": {"number": -1}}, {"installation": {"id": "x"}},
        {"installation": None}, {"comment": []}, {"repository": None},
    ],
)  # fmt: skip
def test_signed_nonsense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        job_of("issue_comment", "d-1", comment(**changes), "torchtpu-agent")


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers())))
def test_no_payload_raises_anything_else(extra: dict[str, Any]) -> None:
    for event in ("issue_comment", "pull_request", "push", "check_run", "installation"):
        for action in ("created", "opened", "rerequested", ""):
            try:
                job_of(event, "d-1", {**comment(), **extra, "action": action}, "x")
            except BadEvent:
                continue


def test_settings_of_a_repository() -> None:
    read = repository_settings.read
    assert read(None) == read(b"") == repository_settings.RepositorySettings()
    wishes = read(
        b"migrate:\n  entry: python train.py\n  verify-steps: 3\npull-requests:\n  anyone: true\nsarif: false\n"
    )
    assert wishes.migrate.entry == ["python train.py"] and wishes.migrate.verify_steps == 3
    assert wishes.pull_requests.anyone and not wishes.sarif


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("migrat:\n  steps: 3", "`migrat`: is not known"),
        ("migrate:\n  steps: many", "`migrate.steps`"),
        ("a: [", "is no YAML"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("- 1", "`the file`"),
        ("x: " + "y" * 70_000, "more than"),
        ("!!python/object/apply:os.system [id]", ""),
        ("[" * 3000, ""),
    ],
)
def test_what_a_repository_gets_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        repository_settings.read(text.encode())
    assert said in str(refused.value)


@given(st.text())
def test_text_of_a_repository_stays_text(said: str) -> None:
    shown = text(said)
    assert "\n" not in shown and "<" not in shown.replace("\\<", "") and "@\u200b" * shown.count("@") == "".join(
        shown[i : i + 2] for i, letter in enumerate(shown) if letter == "@"
    )  # fmt: skip
    fence = block(said).split("\n", 1)[0]
    assert fence not in said and block(said).endswith(f"\n{fence}")


def test_edits_are_made_from_the_end() -> None:
    edits = [
        Replacement(line=1, column=1, end_line=1, end_column=2, text="xyz"),
        Replacement(line=2, column=2, end_line=3, end_column=1, text=""),
        Replacement(line=2, column=1, end_line=2, end_column=3, text="overlaps"),
    ]
    assert applied("ab\ncd\nef\n", edits[:2]) == "xyzb\ncef\n"
    assert applied("ab\ncd\nef\n", edits) == "xyzb\ncef\n"
