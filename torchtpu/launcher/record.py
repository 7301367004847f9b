"""Gathers the events of all of a workload's processes into what its result says."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from torchtpu import events, kinds
from torchtpu.device_info import DeviceInfo
from torchtpu.events import Event, ExceptionEvent, Frame, WarningEvent

MAX_WARNINGS = 200
KEPT_LOSSES = 100
_STACK_LINE = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_BACKEND_LINE = re.compile(r"^.*[/\\](?:torch_tpu|libtpu)[/\\.].*$", re.MULTILINE)
_DEATH = re.compile(
    rb"^Fatal Python error: (Aborted|Segmentation fault|Bus error|Floating[ -]point \w+|Illegal instruction)",
    re.MULTILINE,
)
_SIGNAL_OF = {
    b"Aborted": "SIGABRT",
    b"Segmentation fault": "SIGSEGV",
    b"Bus error": "SIGBUS",
    b"Floating point exception": "SIGFPE",
    b"Floating-point exception": "SIGFPE",
    b"Illegal instruction": "SIGILL",
}
_SECONDARY = ("launcher", "thread", "loader")


@dataclass
class _Process:
    """What one process has reported."""

    rank: int | None = None
    role: str | None = None
    steps: int = 0
    device_steps: int = 0
    device_ops: int | None = None
    signal: int | None = None
    stopped: float | None = None
    died_of: ExceptionEvent | None = None


@dataclass
class Record:
    """The workload's story so far."""

    root: Path
    processes: dict[int, _Process] = field(default_factory=dict)
    replaced: list[_Process] = field(default_factory=list)
    device: DeviceInfo | None = None
    fault: str | None = None
    warnings: list[WarningEvent] = field(default_factory=list)
    exceptions: list[tuple[str, ExceptionEvent]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    first_losses: list[float] = field(default_factory=list)
    last_losses: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_LOSSES))
    count: int = 0

    def add(self, event: Event) -> None:
        """Takes one event; malformed ones are left out, since any program may write into the folder."""
        self.count += 1
        process = self.processes.setdefault(event.pid, _Process())
        if event.rank is not None:
            process.rank = event.rank
        handler = getattr(self, f"_{event.event}", None)
        if handler is None:
            return
        try:
            handler(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            self._note_once("an event could not be read")

    def _note_once(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < KEPT_LOSSES:
            self.notes.append(text)

    def _start(self, event: Event) -> None:
        process = self.processes[event.pid]
        if process.role is not None:
            # The program executed another in its place, or its number has come round again.
            self.replaced.append(process)
            process = self.processes[event.pid] = _Process(process.rank)
        process.role = str(event.data["role"])

    def _armed(self, event: Event) -> None:
        process = self.processes[event.pid]
        process.signal = int(event.data["signal"])

    def _device(self, event: Event) -> None:
        if self.device is None:
            self.device = DeviceInfo(**event.data)

    def _fault(self, event: Event) -> None:
        self.fault = self.fault or f"{event.data['message']}; {event.data['remedy']}"

    def _warning(self, event: Event) -> None:
        warning = events.warning(event)
        known = {(w.message, w.file, w.line) for w in self.warnings}
        if (warning.message, warning.file, warning.line) not in known and len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(warning)

    def _exception(self, event: Event) -> None:
        if len(self.exceptions) < KEPT_LOSSES:
            role = str(event.data.get("role") or self.processes[event.pid].role or "")
            exception = events.exception(event)
            self.exceptions.append((role, exception))
            if role not in _SECONDARY:
                self.processes[event.pid].died_of = exception

    def _step(self, event: Event) -> None:
        process = self.processes[event.pid]
        process.steps = int(event.data["step"])
        process.device_steps = int(event.data["device_steps"])
        process.device_ops = event.data.get("device_ops")
        if process.rank not in (None, 0):
            return
        for _, loss in event.data["losses"]:
            if len(self.first_losses) < KEPT_LOSSES:
                self.first_losses.append(float(loss))
            else:
                self.last_losses.append(float(loss))

    def _ops(self, event: Event) -> None:
        process = self.processes[event.pid]
        process.device_ops = event.data["device_ops"]

    def _loaded(self, event: Event) -> None:
        self.loaded.update(str(file) for file in event.data["files"])

    def _stop(self, event: Event) -> None:
        process = self.processes[event.pid]
        process.stopped = process.stopped or event.time

    def _note(self, event: Event) -> None:
        text = str(event.data["message"])
        if event.data["kind"] == "injection":
            text = f"the start-up code could not do all its work ({text})"
        elif event.data["kind"] == "device":
            text = f"the device did not come up: {text}; {event.data['remedy']}"
        self._note_once(text)

    def native_warnings(self, messages: Iterable[str]) -> None:
        """Adds warnings printed by C++."""
        for message in messages:
            if message.startswith(kinds.OWN_DOING):
                continue
            self.warnings.append(WarningEvent(kinds.warning_kind(message), message, "native"))

    def _all(self) -> list[_Process]:
        return [*self.replaced, *self.processes.values()]

    def _counted(self) -> list[_Process]:
        # Every rank makes the same steps: they count once.
        return [process for process in self._all() if process.rank in (None, 0)]

    @property
    def steps(self) -> int:
        """Optimizer steps made, those of one rank in a distributed run."""
        return sum(process.steps for process in self._counted())

    @property
    def device_steps(self) -> int:
        """Steps whose parameters were on the TPU."""
        return sum(process.device_steps for process in self._counted())

    @property
    def device_ops(self) -> int | None:
        """Programs TorchTPU ran, in all processes."""
        known = [p.device_ops for p in self._all() if p.device_ops is not None]
        return sum(known) if known else None

    @property
    def without_torch(self) -> bool:
        """Whether Python programs ran, all of them told of themselves, and none imported torch."""
        return self.device is None and not self.notes and any(p.role == "program" for p in self._all())

    @property
    def losses(self) -> tuple[float, ...]:
        """The first and the last losses."""
        return (*self.first_losses, *self.last_losses)

    @property
    def stopped(self) -> bool:
        """Whether a process was ended at its number of steps."""
        return any(process.stopped for process in self._all())

    def overdue(self, now: float, grace: float) -> set[int]:
        """Returns the processes that were told to end at their steps longer ago than that; they may be gone."""
        return {
            pid
            for pid, process in self.processes.items()
            if process.stopped is not None and now - process.stopped > grace
        }

    def exception(self) -> ExceptionEvent | None:
        """Returns the exception that came first, a launcher's own only when there is no other."""
        own = self.own_exception()
        return own or next((exception for _, exception in self.exceptions), None)

    def own_exception(self) -> ExceptionEvent | None:
        """Returns the first exception of a program itself, not of its launcher, a thread or a loader."""
        return next((exception for role, exception in self.exceptions if role not in _SECONDARY), None)

    def masked_exception(self) -> ExceptionEvent | None:
        """Returns what ended the program, where the command around it says that all went well (``|| true``).

        A process that tried something on another's behalf, such as an import, is no program.
        """
        programs = [process for process in self._all() if process.role not in _SECONDARY]
        worked = [p for p in programs if p.steps or p.device_ops]
        died = [p.died_of for p in worked or programs if p.died_of is not None]
        return died[0] if died and (worked or len(died) == len(programs)) else None

    def armed(self) -> dict[int, int]:
        """Returns the signal that makes each process show its stacks."""
        return {pid: p.signal for pid, p in self.processes.items() if p.signal is not None}

    def deaths(self, folder: Path) -> list[str]:
        """Returns the names of the signals that Python processes died of, as their last words say."""
        found = []
        for path in folder.glob("*.stacks"):
            match = _DEATH.search(path.read_bytes()[: 64 * 1024])
            if match:
                found.append(_SIGNAL_OF.get(match[1], "a signal"))
        return found

    def stack(self, folder: Path) -> tuple[Frame, ...]:
        """Returns the user's frames of the stacks that were dumped, those of the most telling thread."""
        for path in sorted(folder.glob("*.stacks"), key=self._telling, reverse=True):
            frames = _users_frames(path, self.root)
            if frames:
                return frames
        return ()

    def backend_frame(self, folder: Path) -> str | None:
        """Returns the innermost line of torch_tpu or libtpu in the stack of the thread that died, if it has one."""
        for path in folder.glob("*.stacks"):
            data = path.read_bytes()[: 512 * 1024]
            threads = _threads(data.decode("utf-8", "replace")) if _DEATH.search(data) else []
            for thread in threads:
                if thread.startswith("Current thread") and (found := _BACKEND_LINE.search(thread)):
                    return found[0].strip()
        return None

    def _telling(self, path: Path) -> tuple[bool, bool, int, float]:
        # A process that died comes first, then one that trains; of those that wait for each other, the youngest.
        process = self.processes.get(int(path.stem), _Process())
        died = _DEATH.search(path.read_bytes()[: 64 * 1024]) is not None
        return died, process.role == "program", process.steps, path.stat().st_mtime


def _threads(text: str) -> list[str]:
    return re.split(r"^(?=Current thread|Thread 0x)", text, flags=re.MULTILINE)[1:]


def _users_frames(path: Path, root: Path) -> tuple[Frame, ...]:
    text = path.read_bytes()[-512 * 1024 :].decode("utf-8", "replace")
    # The thread that died comes as "Current thread"; else the main one, which is the last listed.
    threads = _threads(text)
    threads.sort(key=lambda thread: thread.startswith("Current thread"))
    for thread in reversed(threads):
        found = [match for line in thread.splitlines() if (match := _STACK_LINE.match(line))]
        frames = [frame for match in found if (frame := _frame(match, root)) is not None]
        if frames:
            return tuple(reversed(frames))
    return ()


def _frame(match: re.Match[str], root: Path) -> Frame | None:
    path, line = Path(match[1]), int(match[2])
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return None
    try:
        shown = (root / path).resolve().relative_to(root)
        source = (root / path).read_bytes().splitlines()[line - 1].decode("utf-8", "replace").strip()
    except (OSError, ValueError, IndexError):
        return None
    return Frame(str(shown), line, match[3], source[:500])
