"""Runs the main job on a bundled task: `python -m evals.example [TASK]`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from agents.cli import main as command_line
from evals import task as tasks

OUT = Path(__file__).resolve().parent.parent / "out"


def main() -> int:
    """Lay the task out under `out/`, migrate it there, and return the command's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="chargpt", choices=tasks.names())
    task = tasks.load(parser.parse_args().task)
    target = OUT / task.name
    shutil.rmtree(target, ignore_errors=True)
    task.checkout(target)
    arguments = ["migrate", str(target)]
    for entry in task.entries:
        arguments += ["--entry", entry]
    print("$ torchtpu-agent", *(f'"{a}"' if " " in a else a for a in arguments), flush=True)
    return command_line(arguments)


if __name__ == "__main__":
    sys.exit(main())
