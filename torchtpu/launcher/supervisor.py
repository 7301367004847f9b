"""Runs the warden's process and watches it: events, output and limits, until the workload is gone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchtpu.events import Event, EventReader
from torchtpu.launcher import limits
from torchtpu.launcher.outcome import Outcome
from torchtpu.launcher.output import OutputPump
from torchtpu.launcher.record import Record
from torchtpu.launcher.result import LaunchSpec

POLL = 0.05
SAMPLE = 0.25
CLOSE_SAMPLE = 0.05  # once half the memory limit is reached
END_GRACE = 3.0
FLUSH = 30.0
DUMP_WAIT = 0.6
_WARDEN = Path(__file__).resolve().parent / "warden.py"


@dataclass(frozen=True)
class Stop:
    """Why the supervisor ended the workload."""

    outcome: Outcome
    detail: str


@dataclass
class Ending:
    """How the workload ended, as the warden reports it."""

    started: bool = False
    exited: int | None = None
    signal: int | None = None
    left: tuple[str, ...] = ()
    failed: str | None = None
    what: str | None = None


class Supervisor:
    """One supervised run.

    Args:
        spec: What was asked for.
        argv: The command line with its interpreter resolved.
        prefix: Command of the sandbox, or nothing.
        env: The workload's environment.
        events: Folder of the event files.
        written: Folders whose growth counts against the disk limit.
        record: Gets the events.
        on_event: Called with each event.
        on_output: Called with each line of output.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        argv: Sequence[str],
        prefix: Sequence[str],
        env: Mapping[str, str],
        events: Path,
        written: Sequence[Path],
        record: Record,
        on_event: Callable[[Event], None] | None,
        on_output: Callable[[str], None] | None,
    ) -> None:
        self.spec = spec
        self.record = record
        self.ending = Ending()
        self.stop: Stop | None = None
        self._argv, self._prefix, self._env = list(argv), list(prefix), dict(env)
        self._events, self._on_event, self._on_output = EventReader(events), on_event, on_output
        self._idle = limits.IdleMeter()
        self._disk = limits.DiskMeter(written) if spec.disk_limit is not None else None
        self._sampled, self._pause = 0.0, SAMPLE
        self._answers = b""
        self._finished = False

    def run(self) -> None:
        """Starts the workload and returns when it and all its processes are gone."""
        read, write = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 1024 * 1024)
        self.output = OutputPump(read, self.spec.log, self.spec.output_limit, self._on_output, self.spec.verbose)
        try:
            self._spawn(write)
        finally:
            os.close(write)
        self.output.start()
        self._began = time.monotonic()
        try:
            self._watch()
        except KeyboardInterrupt:
            self.stop = self.stop or Stop(Outcome.INTERRUPTED, "")
        finally:
            self._end()
        self._read_events()
        self.output.finish(FLUSH)

    def _spawn(self, output: int) -> None:
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        os.set_blocking(self._status, False)
        config = {
            "argv": self._argv,
            "cwd": str(self.spec.cwd),
            "control": control,
            "status": status,
            "rlimits": self._rlimits(),
        }
        try:
            self._process = subprocess.Popen(
                [*self._prefix, sys.executable, "-I", "-S", str(_WARDEN), json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._env,
                pass_fds=(control, status),
                start_new_session=True,
            )
        finally:
            os.close(control)
            os.close(status)

    def _rlimits(self) -> dict[str, int]:
        found = {"RLIMIT_CORE": 0}
        if self.spec.disk_limit is not None:
            # Stops one file that outgrows the limit between two looks at the disk.
            found["RLIMIT_FSIZE"] = self.spec.disk_limit + 64 * 1024 * 1024
        return found

    def _watch(self) -> None:
        while not self._finished and self._process.poll() is None:
            time.sleep(POLL)
            self._read_events()
            self._read_answers()
            if self.output.failure is not None:
                return
            if time.monotonic() - self._sampled >= self._pause and not self._finished:
                self._sampled = time.monotonic()
                self.stop = self._exceeded()
            if self.stop is not None:
                return

    def _read_events(self) -> None:
        for event in self._events.read():
            self.record.add(event)
            if self._on_event is not None:
                self._on_event(event)

    def _read_answers(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._status, 65536):
                self._answers += data
        *lines, self._answers = self._answers.split(b"\n")
        for line in lines:
            self._answer(json.loads(line))

    def _answer(self, answer: dict[str, Any]) -> None:
        if "started" in answer:
            self.ending.started = True
        elif "failed" in answer:
            self.ending.failed, self.ending.what = answer["message"], answer["what"]
        elif "exited" in answer:
            self.ending.exited, self.ending.signal = answer["exited"], answer["signal"]
            self.ending.left = tuple(answer["left"])
            self._finished = True

    def _exceeded(self) -> Stop | None:
        usage = limits.measure(self._process.pid)
        close = self.spec.memory_limit is not None and usage.memory > self.spec.memory_limit / 2
        self._pause = CLOSE_SAMPLE if close else SAMPLE
        return (
            self._broken()
            or self._time()
            or self._memory(usage)
            or self._space()
            or self._noise()
            or self._stillness(usage)
            or self._overdue(usage)
        )

    def _broken(self) -> Stop | None:
        fault = self.record.fault
        return None if fault is None else Stop(Outcome.NOT_STARTED, fault)

    def _time(self) -> Stop | None:
        limit = self.spec.time_limit
        if limit is None or time.monotonic() - self._began < limit:
            return None
        return Stop(Outcome.TIME_LIMIT, f"{limit:g} s")

    def _memory(self, usage: limits.Usage) -> Stop | None:
        limit = self.spec.memory_limit
        # Resident sizes count shared pages once for each process: only the slower measure convicts.
        if limit is None or usage.memory <= limit or limits.proportional_memory(usage.processes) <= limit:
            return None
        return Stop(Outcome.MEMORY_LIMIT, human_bytes(limit))

    def _space(self) -> Stop | None:
        limit = self.spec.disk_limit
        if limit is None or self._disk is None or self._disk.grown() <= limit:
            return None
        return Stop(Outcome.DISK_LIMIT, human_bytes(limit))

    def _noise(self) -> Stop | None:
        if not self.output.far_beyond:
            return None
        return Stop(Outcome.OUTPUT_LIMIT, human_bytes(self.output.limit))

    def _stillness(self, usage: limits.Usage) -> Stop | None:
        idle = self._idle.idle(usage.cpu, self.output.total + self.record.count)
        if self.spec.idle_limit is None or idle < self.spec.idle_limit:
            return None
        return Stop(Outcome.HANG, f"{self.spec.idle_limit:g} s")

    def _overdue(self, usage: limits.Usage) -> Stop | None:
        late = self.record.overdue(time.time(), self.spec.grace)
        if not late or not late & limits.inner_pids(usage.processes):
            return None
        return Stop(Outcome.STOPPED_AT_STEPS, f"did not end itself within {self.spec.grace:g} s")

    def disk_grown(self) -> int:
        """Returns the bytes the workload has written, measured now."""
        return 0 if self._disk is None else self._disk.grown(now=True)

    def _command(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, text.encode() + b"\n")

    def _dump(self) -> None:
        for pid, number in self.record.armed().items():
            self._command(f"signal {number} {pid}")
        time.sleep(DUMP_WAIT)

    def _end(self) -> None:
        try:
            if not self._finished and self._process.poll() is None:
                self._end_workload()
        finally:
            os.close(self._control)  # the warden ends whatever is left
            self._wait(10.0)
            self._read_answers()
            os.close(self._status)
            self._sweep()

    def _end_workload(self) -> None:
        if self.stop is not None and self.stop.outcome in (
            Outcome.TIME_LIMIT,
            Outcome.HANG,
            Outcome.STOPPED_AT_STEPS,
        ):
            self._dump()
        urgent = self.stop is not None and self.stop.outcome in (Outcome.MEMORY_LIMIT, Outcome.DISK_LIMIT)
        grace = 0.0 if urgent else END_GRACE
        self._command(f"end {grace}")
        self._wait(grace + 10.0)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(POLL)
            self._read_answers()

    def _sweep(self) -> None:
        # Only after something ended the warden itself is there anything left to find here.
        if self._process.poll() is None:
            for pid in (*limits.measure(self._process.pid).processes, self._process.pid):
                _kill(pid)
            self._process.wait()
        for pid in _marked(self._env["TORCHTPU_EVENTS"]):
            _kill(pid)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _marked(folder: str) -> list[int]:
    mark = f"TORCHTPU_EVENTS={folder}\0".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read():
                    found.append(int(name))
    return found


def human_bytes(count: int) -> str:
    """Returns a number of bytes for people, such as ``1.5 GiB``."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
