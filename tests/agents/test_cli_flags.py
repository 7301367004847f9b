"""The flags of every command are frozen in a text file; `python tests/agents/test_cli_flags.py` writes it anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("cli_flags.txt")
ROOT = Path(__file__).resolve().parents[2]


def flags() -> str:
    """Command by command, what `--help` lists; asked for in one other process."""
    code = "from tests.agents.test_cli_flags import collect; print('\\n'.join(collect()))"
    env = {**os.environ, "COLUMNS": "250", "TERM": "dumb", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def collect(command: tuple[str, ...] = ()) -> list[str]:
    import contextlib
    import io

    from agents.cli import main

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert main([*command, "--help"]) == 0
    panel, lines, inner = "", [], []
    for row in text.getvalue().splitlines():
        if row.startswith("╭"):
            panel = row.strip("╭╮─ ")
        elif row.startswith("│") and row[2:3].strip():
            cells = re.split(r"\s{2,}", row.strip("│ "))
            if panel == "Commands":
                inner.append(cells[0])
            else:
                lines.append(" ".join(("torchtpu-agent", *command, *_without_help(cells))))
    return lines + [line for name in inner for line in collect((*command, name))]


def _without_help(cells: list[str]) -> list[str]:
    plain = ("<bool>", "<str>", "<list[str]>")
    return [
        cell
        for cell in cells
        if cell not in plain and re.fullmatch(r"\*|-[\w-]+|[A-Z.]{3,}|-- [A-Z.]+|<.*>|SECONDS .*", cell)
    ]


def test_no_flag_came_or_went_unnoticed():
    assert flags() == FILE.read_text(), f"write it anew with: python {FILE.parent.name}/{Path(__file__).name}"


def test_every_command_explains_itself_and_its_exit_codes(cli):
    for command in ("migrate", "run", "scan", "doctor"):
        ended = cli(command, "--help")
        assert ended.code == 0
        assert "Exit codes" in ended.out


if __name__ == "__main__":
    FILE.write_text(flags())
