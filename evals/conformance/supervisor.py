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


def _cpu_seconds(pid: int) -> float:
    """Returns the processor time a child used, or 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class _Watch:
    """Tells a hung child from one that a busy machine starves.

    A child has its limit in processor time. One that waits, and so uses none, has the same limit
    in wall time.
    """

    pid: int
    limit: float
    idle_since: float = 0.0
    cpu_at_progress: float = 0.0
    cpu_seen: float = 0.0

    def progressed(self) -> None:
        self.idle_since = time.monotonic()
        self.cpu_at_progress = self.cpu_seen = _cpu_seconds(self.pid)

    def hung(self) -> bool:
        now, used = time.monotonic(), _cpu_seconds(self.pid)
        # A deadlocked child's other threads still poll now and then.
        if used - self.cpu_seen > 0.02 * (now - self.idle_since):
            self.idle_since, self.cpu_seen = now, used
        return used - self.cpu_at_progress > self.limit or now - self.idle_since > self.limit


def _wait(child: subprocess.Popen[bytes], results: Path, limit: float) -> bool:
    """Waits for the child while it makes progress; returns False when it had to be killed."""
    watch, seen = _Watch(child.pid, limit), -1
    while child.poll() is None:
        size = results.stat().st_size
        if size != seen:
            seen = size
            watch.progressed()
        elif watch.hung():
            child.kill()
            child.wait()
            return False
        time.sleep(0.5)
    return True


def run(
    suite: str,
    mode: str,
    names: Sequence[str],
    *,
    limit: float = 120.0,
    batch: int = 33,
    environ: dict[str, str] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Runs cases and returns a result for every one of them.

    Args:
        suite: A name from ``suites.NAMES``.
        mode: ``eager``, ``fuse`` or ``compile``.
        names: The cases to run.
        limit: Seconds of processor time one case may take, and of waiting without any.
        batch: Cases a child runs before the next child takes over, which bounds its memory.
        environ: Variables for the children besides this process's own.
        report: Called with every result as it comes.

    Returns:
        One dictionary a case: ``case``, ``verdict`` (also ``death`` and ``hang``) and details.
    """
    found: list[dict[str, Any]] = []
    left = list(names)
    while left:
        for line in _child(suite, mode, left[:batch], limit, environ or {}):
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
            in_time = _wait(child, results, limit)
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
