"""What to launch and what came of it: the typed input and result of a supervised run."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from torchtpu.device import DeviceInfo
from torchtpu.events import ExceptionEvent, Frame, WarningEvent
from torchtpu.proof.spec import Proof


class Outcome(enum.StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    STOPPED_AT_STEPS = "stopped-at-steps"
    EXCEPTION = "exception"
    EXIT_NONZERO = "exit-nonzero"
    ABORT = "abort"
    TIME_LIMIT = "time-limit"
    HANG = "hang"
    MEMORY_LIMIT = "memory-limit"
    DISK_LIMIT = "disk-limit"
    OUTPUT_LIMIT = "output-limit"
    DAEMONISED = "daemonised"
    NOT_STARTED = "not-started"
    INTERRUPTED = "interrupted"

    @property
    def good(self) -> bool:
        """Whether the program did all it was asked to."""
        return self in (Outcome.COMPLETED, Outcome.STOPPED_AT_STEPS)


@dataclass(frozen=True)
class LaunchSpec:
    """A workload and the conditions it runs under.

    Attributes:
        argv: The command line; ``python`` or ``python3`` at its head means ``python`` below.
        cwd: The project's folder, where it runs; it may write there.
        env: Variables added to the environment; they are passed on even where they look like credentials.
        device: ``auto`` takes hardware when there is some, else the simulated device.
        python: The workload's interpreter; None is the running one. Its folder comes first on PATH.
        max_steps: The program is ended cleanly after that many optimizer steps.
        time_limit: Seconds of wall time.
        idle_limit: Seconds without output, event or processor use after which it counts as hanging.
        memory_limit: Bytes of memory of all its processes together; looked at several times a second.
        disk_limit: Bytes by which the folders it may write to may grow; also the size limit of any one file.
        output_limit: Bytes of output kept in the log; 64 times as much ends the run.
        sandbox: ``on`` refuses to run without one, ``auto`` says so in the result.
        writable: Folders it may write to besides ``cwd`` and its private temporary folder.
        numerics: ``tpu`` rounds matrix inputs to bfloat16 on a simulated device.
        verbose: The native log is shown too.
        log: File for the combined output.
        grace: Seconds a program has to end itself when it is told to.
        plugin: CPU PJRT plugin for a simulated device, whatever its hash.
        proof: The run's part in a comparison; one of the oracle takes the CPU whatever ``device`` says.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: Path | None = None
    max_steps: int | None = None
    time_limit: float | None = None
    idle_limit: float | None = None
    memory_limit: int | None = None
    disk_limit: int | None = None
    output_limit: int | None = None
    sandbox: Literal["auto", "on", "off"] = "auto"
    writable: Sequence[Path] = ()
    numerics: Literal["float32", "tpu"] = "float32"
    verbose: bool = False
    log: Path | None = None
    grace: float = 20.0
    plugin: Path | None = None
    proof: Proof | None = None


@dataclass(frozen=True)
class RunResult:
    """What came of a run.

    Attributes:
        outcome: How it ended.
        exit_code: Of the command itself; None when a signal ended it or it never ran.
        signal: Name of that signal, such as ``SIGABRT``.
        duration: Seconds.
        device: The device that came up in the workload; None when none did.
        steps: Optimizer steps made.
        device_steps: Those whose parameters were on the TPU.
        losses: Loss of each step where known, the first 100 and the last 100.
        device_ops: Programs TorchTPU was asked to run; None where TorchTPU was not loaded.
        warnings: What was warned of, with the user's lines.
        exception: The exception that ended it.
        native_tail: Last lines of the native log that were no mere information.
        output_tail: Last lines of the program's own output.
        log: File with the output.
        sandboxed: Whether it ran in the sandbox.
        sandbox_note: What the sandbox was, or why there was none.
        stack: The user's Python frames at the moment it died or was ended, outermost first.
        fatal: The first line of the native log that says why it died.
        notes: What else a person should know.
        detail: What the outcome is about: the limit, the missing file, the processes left.
        argv: The command line.
        output_bytes: Bytes it printed.
        python: The workload's interpreter.
    """

    outcome: Outcome
    exit_code: int | None
    signal: str | None
    duration: float
    device: DeviceInfo | None
    steps: int
    device_steps: int
    losses: tuple[float, ...]
    device_ops: int | None
    warnings: tuple[WarningEvent, ...]
    exception: ExceptionEvent | None
    native_tail: tuple[str, ...]
    output_tail: str
    log: Path | None
    sandboxed: bool
    sandbox_note: str
    stack: tuple[Frame, ...] = ()
    fatal: str | None = None
    notes: tuple[str, ...] = ()
    detail: str = ""
    argv: tuple[str, ...] = ()
    output_bytes: int = 0
    python: str = ""

    def explain(self) -> str:
        """Says in a few sentences what ended the run, where, and what to do next."""
        from torchtpu.launcher import explain

        return explain.explain(self)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values, with the explanation; a loss that is not finite is a string."""
        data = asdict(self)
        data["losses"] = [loss if math.isfinite(loss) else str(loss) for loss in self.losses]
        data["outcome"] = str(self.outcome)
        data["log"] = str(self.log) if self.log else None
        data["explanation"] = self.explain()
        return data
