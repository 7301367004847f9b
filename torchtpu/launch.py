"""Runs a workload as a supervised child process and says how it ended."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from torchtpu import device
from torchtpu.events import Event
from torchtpu.launcher import environment, limits, sandbox
from torchtpu.launcher.outcome import Outcome
from torchtpu.launcher.record import Record
from torchtpu.launcher.result import LaunchSpec, RunResult
from torchtpu.launcher.supervisor import Ending, Supervisor, human_bytes

__all__ = ["LaunchSpec", "Outcome", "RunResult", "launch"]

# What the interpreter itself prints before any of the program has run.
_NEVER_RAN = ("can't open file", "No module named", "is a package and cannot be directly executed")
_UNSEEN = (
    "no Python process reported: the program started none, or without the environment (python -I or -E),"
    " so its device, steps and warnings are not known"
)
_PYTHON_NAMES = ("python", "python3")


def launch(
    spec: LaunchSpec,
    on_event: Callable[[Event], None] | None = None,
    on_output: Callable[[str], None] | None = None,
) -> RunResult:
    """Runs a workload to its end under limits, on a device, in the sandbox where there is one.

    Ctrl-C ends it and is told by the outcome. When this process dies, so does the workload.

    Args:
        spec: What to run and how.
        on_event: Called in this thread with each event as it comes.
        on_output: Called in another thread with each line the program prints, native log noise left out.

    Returns:
        How it ended and what it did. A workload that cannot be started is a result too.
    """
    spec = dataclasses.replace(spec, cwd=spec.cwd.resolve())
    if spec.proof is not None and spec.proof.oracle:
        spec = dataclasses.replace(spec, device="cpu")
    problem = _unusable(spec)
    if problem:
        return _not_started(spec, problem)
    try:
        info = device.choose(spec.device, python=spec.python, plugin=spec.plugin)
    except device.DeviceError as error:
        return _not_started(spec, str(error))
    private = environment.Private()
    try:
        return _run(spec, info, private, on_event, on_output)
    finally:
        private.remove()


def _unusable(spec: LaunchSpec) -> str | None:
    if not spec.argv:
        return "the command line is empty"
    if not spec.cwd.is_dir():
        return f"there is no folder {spec.cwd}"
    python = _python(spec)
    if shutil.which(python) is None:
        return f"there is no interpreter {python}"
    return None


def _python(spec: LaunchSpec) -> Path:
    # Not resolved: in a virtual environment the link's own place is what makes it one.
    return Path(spec.python or sys.executable).absolute()


def _not_started(spec: LaunchSpec, detail: str) -> RunResult:
    return RunResult(
        outcome=Outcome.NOT_STARTED,
        exit_code=None,
        signal=None,
        duration=0.0,
        device=None,
        steps=0,
        device_steps=0,
        losses=(),
        device_ops=None,
        warnings=(),
        exception=None,
        native_tail=(),
        output_tail="",
        log=None,
        sandboxed=False,
        sandbox_note="",
        detail=detail,
        argv=tuple(spec.argv),
        python=str(_python(spec)),
    )


def _run(
    spec: LaunchSpec,
    info: device.DeviceInfo,
    private: environment.Private,
    on_event: Callable[[Event], None] | None,
    on_output: Callable[[str], None] | None,
) -> RunResult:
    python = _python(spec)
    writable = [spec.cwd, *(path.resolve() for path in (*spec.writable, *_recorded(spec)))]
    box = sandbox.build(spec.sandbox, private.root, writable, _readable(python, info, private), spec.memory_limit)
    if spec.sandbox == "on" and not box.on:
        return _not_started(spec, box.note)
    variables = device.environment(info, spec.numerics)
    if spec.proof is not None:
        variables |= spec.proof.variables()
    if spec.verbose:
        variables[device.VERBOSE_VARIABLE] = "1"
    env, withheld = environment.build(private, python, spec.cwd, variables, spec.env, spec.max_steps)
    private.add_commands(python, env)
    if box.on:
        env = {**sandbox.OFFLINE, **env}
    record = Record(spec.cwd)
    supervisor = Supervisor(
        spec,
        [str(python), *spec.argv[1:]] if spec.argv[0] in _PYTHON_NAMES else spec.argv,
        box.prefix,
        env,
        private.events,
        [*writable, private.tmp],
        record,
        on_event,
        on_output,
    )
    killed, began = limits.oom_kills(), time.monotonic()
    supervisor.run()
    if withheld:
        record.notes.append(f"credentials withheld from the environment: {', '.join(withheld)}")
    return _result(spec, supervisor, record, private, box, time.monotonic() - began, limits.oom_kills() > killed)


def _recorded(spec: LaunchSpec) -> list[Path]:
    return [spec.proof.record] if spec.proof is not None and spec.proof.record is not None else []


def _readable(python: Path, info: device.DeviceInfo, private: environment.Private) -> list[Path]:
    places = [private.path, private.bin, Path(sys.prefix), Path(device.__file__).resolve().parent]
    places += [python.parent.parent if python.parent.name == "bin" else python.parent]
    if info.plugin:
        places.append(Path(info.plugin).resolve().parent)
    temporary = private.root.parent
    return [place for place in places if temporary in place.parents]


def _result(
    spec: LaunchSpec,
    supervisor: Supervisor,
    record: Record,
    private: environment.Private,
    box: sandbox.Sandbox,
    duration: float,
    oom: bool,
) -> RunResult:
    ending, output = supervisor.ending, supervisor.output
    record.native_warnings(output.warnings)
    deaths = record.deaths(private.events)
    outcome, detail = _outcome(supervisor, record, deaths, oom)
    if not record.processes and outcome is not Outcome.NOT_STARTED:
        record.notes.append(_UNSEEN)
    if output.truncated:
        record.notes.append(f"the log keeps {output.limit} of {output.total} bytes of output")
    return RunResult(
        outcome=outcome,
        exit_code=ending.exited,
        signal=_signal(ending, deaths) if outcome is Outcome.ABORT else None,
        duration=duration,
        device=record.device,
        steps=record.steps,
        device_steps=record.device_steps,
        losses=record.losses,
        device_ops=record.device_ops,
        warnings=tuple(record.warnings),
        exception=None if outcome.good else record.exception(),
        native_tail=tuple(output.native),
        output_tail=output.tail(),
        log=spec.log,
        sandboxed=box.on,
        sandbox_note=box.note,
        stack=() if outcome.good else record.stack(private.events),
        fatal=output.fatal[0] if output.fatal else None,
        notes=tuple(record.notes),
        detail=detail,
        argv=tuple(spec.argv),
        output_bytes=output.total,
        python=str(_python(spec)),
        loaded=tuple(sorted(record.loaded)),
        without_torch=record.without_torch,
        backend_frame=None if outcome.good else record.backend_frame(private.events),
    )


def _signal(ending: Ending, deaths: Sequence[str]) -> str | None:
    """Returns the name of the deadly signal: the command's own, a child's, or what a shell's code stands for."""
    number = ending.signal or (None if deaths else _from_shell(ending.exited))
    if number is None and ending.exited is None:
        return deaths[0] if deaths else "SIGKILL"  # the supervisor itself was killed
    if number is None:
        return deaths[0] if deaths else None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _from_shell(code: int | None) -> int | None:
    return code - 128 if code is not None and 128 < code < 128 + signal.NSIG else None


def _outcome(supervisor: Supervisor, record: Record, deaths: Sequence[str], oom: bool) -> tuple[Outcome, str]:
    ending = supervisor.ending
    if supervisor.stop is not None:
        return supervisor.stop.outcome, supervisor.stop.detail
    if record.fault is not None:
        return Outcome.NOT_STARTED, record.fault
    if ending.failed is not None:
        return Outcome.NOT_STARTED, f"{ending.what}: {ending.failed}"
    if ending.exited is None and ending.signal is None:
        if ending.started:
            return Outcome.ABORT, "its supervisor was killed"
        return Outcome.NOT_STARTED, supervisor.output.tail().strip() or "its supervisor did not run"
    if ending.exited == 0:
        return _good(ending.left, record)
    return _bad(supervisor, record, deaths, oom)


def _good(left: tuple[str, ...], record: Record) -> tuple[Outcome, str]:
    if left:
        return Outcome.DAEMONISED, "; ".join(left)
    # A shell line such as `python train.py || true` ends well whatever its program does.
    if not record.stopped and record.masked_exception() is not None:
        return Outcome.EXCEPTION, ""
    return (Outcome.STOPPED_AT_STEPS if record.stopped else Outcome.COMPLETED), ""


def _bad(supervisor: Supervisor, record: Record, deaths: Sequence[str], oom: bool) -> tuple[Outcome, str]:
    limit = supervisor.spec.disk_limit
    if limit is not None and supervisor.disk_grown() > limit:
        return Outcome.DISK_LIMIT, human_bytes(limit)
    ending = supervisor.ending
    # A shell, torchrun and mp.spawn turn the death of a child into an exit code of their own.
    died = ending.signal or deaths or _from_shell(ending.exited)
    # Some failed checks end the process with an ordinary exit code.
    died = died or (supervisor.output.fatal and record.own_exception() is None)
    if oom and died:
        return Outcome.MEMORY_LIMIT, "the machine's"
    if died:
        return Outcome.ABORT, ""
    if record.exception() is not None:
        return Outcome.EXCEPTION, ""
    tail = supervisor.output.tail().strip()
    if len(tail.splitlines()) == 1 and any(words in tail for words in _NEVER_RAN):
        return Outcome.NOT_STARTED, tail
    return Outcome.EXIT_NONZERO, ""
