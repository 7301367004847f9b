"""The skill folder is complete: every tool, command, rule and entry of this version, and links that lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from agents.cli import app
from agents.toolkit import tools
from tools.knowledge import entries
from tools.rules import all_rules


def written(folder: Path) -> Path:
    """The folder as the command writes it."""
    done = CliRunner().invoke(app, ["skill", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def test_the_folder_is_complete(tmp_path: Path) -> None:
    references = written(tmp_path / "skill") / "references"
    described = re.findall(r"^## (\S+)$", (references / "tools.md").read_text(), re.M)
    assert described == list(tools())
    commands = re.findall(r"^## torchtpu-agent (\S+)$", (references / "commands.md").read_text(), re.M)
    assert set(commands) == set(get_command(app).commands)
    known = (references / "knowledge.md").read_text()
    assert all(f"`{entry.id}`" in known for entry in entries())
    rules = (references / "rules.md").read_text()
    assert all(f"`{rule.ID}`" in rules for rule in all_rules())


def test_each_tool_is_described_with_its_arguments(tmp_path: Path) -> None:
    page = (written(tmp_path / "skill") / "references/tools.md").read_text()
    for name, tool in tools().items():
        part = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert tool.description in part
        assert set(re.findall(r"^- `(\w+)`", part, re.M)) == set(tool.parameters().get("properties", {}))


def test_the_front_matter_and_the_links_hold(tmp_path: Path) -> None:
    folder = written(tmp_path / "skill")
    text = (folder / "SKILL.md").read_text()
    head = text.split("---\n")[1].splitlines()
    assert [line.partition(":")[0] for line in head] == ["name", "description"]
    assert len(json.loads(head[1].partition(": ")[2])) <= 1024
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) >= 5 and all((folder / link).is_file() for link in links)
    named = set(re.findall(r"`torchtpu-agent (\w+)", text))
    assert named <= set(get_command(app).commands)
    server = json.loads((folder / ".mcp.json").read_text())["mcpServers"]["torchtpu-agent"]
    assert server["command"] == "torchtpu-agent" and server["args"][0] == "mcp"


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = CliRunner().invoke(app, ["skill", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    written(written(tmp_path / "skill"))
