"""Runs a suite in child processes, so that a death or a hang costs one case and not the run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_NATIVE_LAST_WORDS = re.compile(r"^F\d{4}|Check failed|terminate called|Fatal Python|LLVM ERROR")


@dataclass
class Progress:
    """What a child reported so far.

    Attributes:
        lines: Finished cases, in order.
        running: The case it is in, if any.
        ended: Whether it went through its list.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    running: str | None = None
    ended: bool = False


def _read(results: Path) -> Progress:
    progress = Progress()
    for text in results.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # half a line: the child is writing it, or died while it did
            continue
        event = line.pop("event")
        if event == "start":
            progress.running = line["case"]
        elif event == "done":
            progress.running = None
            progress.lines.append(line)
        else:
            progress.ended = True
    return progress


def _last_words(log: Path, case: str | None) -> str:
    text = log.read_text(errors="replace")
    own = text.split(f"== {case}\n")[-1] if case else text
    fatal = [line for line in own.splitlines() if _NATIVE_LAST_WORDS.search(line)]
    return " | ".join(fatal[:3])[:600] or own[-300:].strip()


def _wait(child: subprocess.Popen[bytes], results: Path, limit: float, start_limit: float) -> bool:
    """Waits for the child while it makes progress; returns False when it had to be killed."""
    seen, since = results.stat().st_size, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        size = results.stat().st_size
        if size != seen:
            seen, since = size, time.monotonic()
        allowed = limit if seen else start_limit
        if time.monotonic() - since > allowed:
            child.kill()
            child.wait()
            return False
    return True


def run(
    suite: str,
    mode: str,
    names: Sequence[str],
    *,
    limit: float = 120.0,
    start_limit: float = 180.0,
    batch: int = 33,
    environ: dict[str, str] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Runs cases and returns a result for every one of them.

    Args:
        suite: A name from ``suites.NAMES``.
        mode: ``eager``, ``fuse`` or ``compile``.
        names: The cases to run.
        limit: Seconds one case may take.
        start_limit: Seconds until the first case starts.
        batch: Cases a child runs before the next child takes over, which bounds its memory.
        environ: Variables for the children besides this process's own.
        report: Called with every result as it comes.

    Returns:
        One dictionary a case: ``case``, ``verdict`` (also ``death`` and ``hang``) and details.
    """
    found: list[dict[str, Any]] = []
    left = list(names)
    while left:
        for line in _child(suite, mode, left[:batch], limit, start_limit, environ or {}):
            found.append(line)
            if report is not None:
                report(line)
        done = {line["case"] for line in found}
        left = [name for name in left if name not in done]
    return found


def _child(
    suite: str,
    mode: str,
    names: Sequence[str],
    limit: float,
    start_limit: float,
    environ: dict[str, str],
) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        results, log = Path(folder, "results.jsonl"), Path(folder, "log")
        results.touch()
        command = [sys.executable, "-m", "evals.conformance.worker", suite, mode, str(results)]
        variables = {
            **os.environ,
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            **environ,
        }
        with log.open("wb") as output:
            child = subprocess.Popen(
                [*command, ",".join(names)],
                cwd=folder,
                env=variables,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            in_time = _wait(child, results, limit, start_limit)
        progress = _read(results)
        yield from progress.lines
        if progress.ended:
            return
        # No case started: the first one takes the blame, so that the run always gets on.
        blamed = progress.running or next(
            name for name in names if name not in {line["case"] for line in progress.lines}
        )
        verdict = "death" if in_time else "hang"
        detail = f"exit code {child.returncode}: {_last_words(log, progress.running)}"
        yield {"case": blamed, "verdict": verdict, "detail": detail}
