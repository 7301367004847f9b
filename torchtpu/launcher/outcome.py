"""How a supervised run ended, and what is known of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from torchtpu.device_info import DeviceInfo
from torchtpu.events import ExceptionEvent, Frame, WarningEvent


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
class Facts:
    """What is known of a run that has ended.

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
        loaded: The project's files that were imported, as those processes tell that came to their end.
        without_torch: Whether Python programs ran, all of them told of themselves, and none imported torch.
        backend_frame: The innermost frame of torch_tpu or libtpu in the thread that died, where there is one.
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
    loaded: tuple[str, ...] = ()
    without_torch: bool = False
    backend_frame: str | None = None
