"""Measures what a workload uses: memory and processor time of a process tree, bytes on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")
_STATE, _PARENT, _USER, _SYSTEM, _RSS = 0, 1, 11, 12, 21


@dataclass(frozen=True)
class Usage:
    """What a process tree uses now: resident bytes, seconds of processor time so far, number of processes."""

    memory: int
    cpu: float
    processes: tuple[int, ...]


def _stat(pid: int) -> list[bytes] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _all() -> dict[int, list[bytes]]:
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None and stat[_STATE] != b"Z"}


def measure(root: int) -> Usage:
    """Returns the use of a process and everything below it."""
    processes = _all()
    children: dict[int, list[int]] = {}
    for pid, stat in processes.items():
        children.setdefault(int(stat[_PARENT]), []).append(pid)
    tree, todo = [], [root]
    while todo:
        pid = todo.pop()
        if pid in processes:
            tree.append(pid)
            todo += children.get(pid, [])
    memory = sum(int(processes[pid][_RSS]) * _PAGE for pid in tree)
    ticks = sum(int(processes[pid][_USER]) + int(processes[pid][_SYSTEM]) for pid in tree)
    return Usage(memory, ticks / _TICK, tuple(tree))


def proportional_memory(pids: Iterable[int]) -> int:
    """Returns the processes' memory with shared pages counted once; slower than ``measure``."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return total


def inner_pids(pids: Iterable[int]) -> set[int]:
    """Returns the ids by which processes know themselves, which in a sandbox are not the ones outside."""
    found = set()
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        found |= {int(line.split()[-1]) for line in lines if line.startswith("NSpid:")}
    return found


def oom_kills() -> int:
    """Returns how many processes the kernel has killed for want of memory since it started."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))


def _sizes(folder: str) -> Iterator[int]:
    todo = [folder]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue


class DiskMeter:
    """Follows how many bytes the folders have grown; a large tree is walked the less often.

    Args:
        folders: The folders the workload may write to.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [str(folder) for folder in folders]
        self._next = 0.0
        self._grown = 0
        self._base = self._walk()

    def _walk(self) -> int:
        began = time.monotonic()
        total = sum(size for folder in self._folders for size in _sizes(folder))
        took = time.monotonic() - began
        self._next = time.monotonic() + max(0.3, 20 * took)
        return total

    def grown(self, now: bool = False) -> int:
        """Returns the growth in bytes since the start, as of the last walk; ``now`` walks in any case."""
        if now or time.monotonic() >= self._next:
            self._grown = self._walk() - self._base
        return self._grown


class IdleMeter:
    """Says how long a process tree has done nothing: no output, no event, no processor time to speak of."""

    BUSY = 0.05  # share of one processor that counts as work; a process that polls stays far below
    WINDOW = 0.5

    def __init__(self) -> None:
        self._active = self._sampled = time.monotonic()
        self._cpu = 0.0
        self._signs = 0

    def idle(self, cpu: float, signs: int) -> float:
        """Returns the seconds since the last activity.

        Args:
            cpu: Processor seconds so far.
            signs: Any count that grows with output and events.
        """
        now = time.monotonic()
        if signs != self._signs:
            self._signs, self._active = signs, now
        if now - self._sampled >= self.WINDOW:
            busy = (cpu - self._cpu) / (now - self._sampled)
            # Negative: a process ended and took its time with it, which is a sign of life too.
            if busy > self.BUSY or busy < 0:
                self._active = now
            self._cpu, self._sampled = cpu, now
        return now - self._active
