"""Pages made from the code are up to date, and the README's commands exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from typer.main import get_command

from agents.cli import app
from tools.rules import all_rules

ROOT = Path(__file__).resolve().parent.parent


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "text"), generator().pages().items())
def test_a_made_page_is_what_the_code_says(name: str, text: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: make docs"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_commands_on_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    known = set(get_command(app).commands)
    assert set(re.findall(r"^(?:\$ |\.venv/bin/)?torchtpu-agent (\w+)", text, re.M)) <= known
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.M)) <= targets


def test_links_in_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_rule_explains_itself() -> None:
    assert [rule.ID for rule in all_rules() if not (type(rule).__doc__ or "").strip()] == []
