"""Helpers of the launch tests: write a program, run it, look for its processes."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path
from typing import Any

from torchtpu.launch import LaunchSpec, RunResult, launch


def write(folder: Path, source: str, name: str = "prog.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


def run(folder: Path, source: str | None = None, argv: list[str] | None = None, **options: Any) -> RunResult:
    """Runs a program on the CPU device, without a sandbox unless one is asked for."""
    if source is not None:
        write(folder, source)
    calls = {key: options.pop(key) for key in ("on_event", "on_output") if key in options}
    settings = {"device": "cpu", "sandbox": "off", "time_limit": 120, **options}
    return launch(LaunchSpec(argv=argv or ["python", "prog.py"], cwd=folder, **settings), **calls)


def processes_with(mark: str) -> list[int]:
    """Returns the processes that have a text in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                text = Path(f"/proc/{name}/cmdline").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in text and state != "Z":
                found.append(int(name))
    return found


def wait_until(condition: Any, seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())
