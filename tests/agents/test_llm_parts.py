"""What keeps a conversation short, its secrets in, and a wait bounded."""

from __future__ import annotations

import pytest

from agents.llm.messages import Message, ToolCall
from agents.llm.redact import HIDDEN, redact
from agents.llm.trim import DoesNotFit, size, trim
from agents.toolkit import tools


def said(role: str, length: int, evidence: bool = False) -> Message:
    return Message(role=role, content="x" * length, evidence=evidence, name="read_file" if role == "tool" else None)


def test_results_go_first_then_talk_and_evidence_never():
    messages = [
        said("system", 500), said("user", 300), said("tool", 4000), said("tool", 4000, evidence=True),
        said("assistant", 3000), said("user", 10), said("assistant", 10),
    ]  # fmt: skip
    kept = trim(messages, 9000, keep=2)
    assert [len(m.content) for m in kept if m.evidence or m.role == "system"] == [500, 4000]
    assert "left out" in kept[2].content and len(kept[4].content) == 3000
    shorter = trim(messages, 5500, keep=2)
    assert "left out" in shorter[4].content and size(shorter) <= 5500
    assert [m.role for m in shorter] == [m.role for m in messages]
    assert trim(messages, 20_000) == messages


def test_evidence_that_is_too_long_is_not_cut_but_said():
    with pytest.raises(DoesNotFit):
        trim([said("tool", 9000, evidence=True)], 5000, keep=0)


def test_arguments_of_calls_count():
    call = ToolCall(id="1", name="edit_file", arguments="y" * 1000)
    assert size([Message(role="assistant", tool_calls=[call])]) == 1000


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefghijklmnop1234", "ghp_abcdefghijklmnopqrstuvwxyz123456", "hf_abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP", "https://user:passw0rd@host/x.git", "Authorization: Bearer abcdefghijk",
        'api_key = "abcdefgh12345"', "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_known_forms_of_secrets_are_hidden(text):
    assert HIDDEN in redact(f"before {text} after")
    assert "before" in redact(f"before {text} after") and "after" in redact(f"before {text} after")


def test_code_is_not_taken_for_secrets():
    code = "token = tokenizer(text)\nkey = query @ key.T\nfor k in keys: print(k)\npassword_field = None\n"
    assert redact(code) == code


def test_every_tool_has_a_schema_a_model_can_read():
    for name, tool in tools().items():
        schema = tool.schema()["function"]
        assert schema["name"] == name and len(schema["description"]) > 30
        assert schema["parameters"]["type"] == "object" and not schema["parameters"]["additionalProperties"]
