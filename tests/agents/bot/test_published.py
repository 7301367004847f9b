"""What is published beside the bot: the action's steps run, the docs name every setting, manifests too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from agents.bot.commands import HELP
from agents.bot.repository_settings import RepositorySettings
from agents.bot.settings import BotSettings

ROOT = Path(__file__).resolve().parents[3]


def read(path: str) -> list[Any]:
    with (ROOT / path).open() as file:
        return list(YAML(typ="safe", pure=True).load_all(file))


def step(name: str) -> str:
    """The script of a step of the action."""
    return next(str(one["run"]) for one in read("action.yml")[0]["runs"]["steps"] if one["name"] == name)


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SELECT": "", "IGNORE": "",
        "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"), **variables,
    }  # fmt: skip
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("fail", "code"), [("false", 0), ("true", 1)])
def test_the_action_scans_a_folder_whatever_its_name(tmp_path: Path, fail: str, code: int) -> None:
    odd = tmp_path / "a $(touch injected) folder"
    odd.mkdir()
    (odd / "train.py").write_text("import torch\n\nx = torch.zeros(3).cuda()\n")
    done = run(step("Scan"), tmp_path, SCANNED=str(odd), FAIL=fail, SARIF="out.sarif", SELECT="TPU1")
    assert done.returncode == code, done.stderr
    assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"
    said = (tmp_path / "output").read_text().splitlines()
    assert said[0] == "sarif=out.sarif" and int(said[1].removeprefix("findings=")) >= 1
    assert not (tmp_path / "injected").exists()


def test_the_action_puts_no_input_into_a_script() -> None:
    for one in read("action.yml")[0]["runs"]["steps"]:
        assert "${{" not in one["run"]


def test_the_docs_name_every_setting() -> None:
    text = (ROOT / "docs" / "bot.md").read_text()
    for name in BotSettings.model_fields:
        assert name == "database_url" or f"`{name.upper()}`" in text, name
    parts = {name: field.alias or name for name, field in RepositorySettings.model_fields.items()}
    for alias in parts.values():
        assert f"\n{alias}:" in text
    for line in HELP.splitlines():
        if line.startswith("| `/torchtpu "):
            assert line.split()[2].strip("`") in text


def test_manifests_name_settings_that_are_there() -> None:
    known = {f"TORCHTPU_GITHUB_{name.upper()}" for name in BotSettings.model_fields}
    known |= {"TORCHTPU_GITHUB_PRIVATE_KEY_FILE", "TORCHTPU_DATABASE_URL"}
    compose = read("deploy/docker-compose.yml")[0]
    named = {name for one in compose["services"].values() for name in one.get("environment", {})}
    for document in read("deploy/kubernetes.yaml"):
        if document["kind"] == "Deployment":
            containers = document["spec"]["template"]["spec"]["containers"]
            named |= {one["name"] for container in containers for one in container["env"]}
    assert {name for name in named if name.startswith("TORCHTPU")} <= known
    assert compose["services"]["worker"]["command"] == ["worker"]
