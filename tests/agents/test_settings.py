"""torchtpu.toml, sizes, and what wins over what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents import settings
from agents.state import Request
from tools.errors import UserError


def request(**more):
    return Request(source=".", created="2026-01-01T00:00:00+00:00", **more)


def write(folder: Path, text: str) -> Path:
    (folder / "torchtpu.toml").write_text(text)
    return folder


def test_the_command_line_wins_over_the_file_and_the_file_over_the_defaults(tmp_path):
    file = settings.read(write(tmp_path, 'entry = "python a.py"\n[limits]\nsteps = 7\nidle-timeout = 9\n'))
    combined = settings.combine(request(steps=0), file)
    assert combined.entries == ["python a.py"]
    assert (combined.steps, combined.idle_timeout, combined.timeout) == (0, 9, 1800)


def test_without_a_file_there_are_defaults(tmp_path):
    assert settings.combine(request(), settings.read(tmp_path)).steps == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entry = ", "not valid TOML"),
        ("python = '/usr/bin/python'", "python"),
        ("[limits]\nsandbox = false", "sandbox"),
        ("[limits]\nsteps = -1", "steps"),
        ("[limits]\nmemory = 'much'", "memory"),
        ("entry = 3", "entry"),
    ],
)
def test_what_it_may_not_say_is_named(tmp_path, text, message):
    with pytest.raises(UserError, match=re.escape(message)):
        settings.read(write(tmp_path, text))


def test_a_link_in_its_place_is_not_read(tmp_path):
    (tmp_path / "torchtpu.toml").symlink_to("/etc/passwd")
    assert settings.read(tmp_path) == settings.RepositoryFile()


@pytest.mark.parametrize(
    ("text", "size"), [("8G", 8 * 2**30), ("512MB", 512 * 2**20), ("1.5 GiB", 3 * 2**29), ("100", 100)]
)
def test_sizes(text, size):
    assert settings.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1G", "8X", "0"])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="no size"):
        settings.parse_size(text)


def test_the_example_in_the_documentation_is_valid(tmp_path):
    page = (Path(__file__).parents[2] / "docs/settings.md").read_text()
    file = settings.read(write(tmp_path, re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1]))
    assert file.limits.memory == 8 * 2**30
