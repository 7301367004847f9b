"""Starts programs of ours as children, with the rooms on their path as the installed command has them; ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from agents.runs import home

SECRETS = ("TORCHTPU_TOKEN", "TORCHTPU_GITHUB_", "TORCHTPU_DATABASE_URL")
"""Beginnings of the names of variables that no child gets to see."""
ROOMS = Path(__file__).resolve().parents[2]
_START = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); module = sys.argv.pop(1);"
    " runpy.run_module(module, run_name='__main__', alter_sys=True)"
)


def start(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Run a module of ours in a process group of its own.

    Args:
        module: Its dotted name.
        arguments: Words behind it.
        options: What `subprocess.Popen` takes besides.
    """
    command = [sys.executable, "-P", "-c", _START, str(ROOMS), module, *arguments]
    # The server's own secrets are nothing to a program that runs other people's code.
    env = {name: value for name, value in os.environ.items() if not name.startswith(SECRETS)}
    env |= {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, env=env, start_new_session=True, **options)


def see_off(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a child that was asked to end; where it does not in time, its whole group is killed."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def own_folder() -> Path:
    """Where the server keeps what is its own: its secret, and what its children print."""
    folder = home() / "web"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
