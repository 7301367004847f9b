"""Says in plain sentences what ended a run, where, and what to do next."""

from __future__ import annotations

import re

from torchtpu.events import ExceptionEvent, Frame
from torchtpu.launcher.outcome import Facts, Outcome

# Reading a value is where an error of an earlier, asynchronous operation comes to light.
_READS = re.compile(r"\.(?:cpu|item|tolist|numpy)\(|\bprint\(|\bfloat\(|\bint\(")
_NETWORK = re.compile(
    r"name resolution|Network is unreachable|getaddrinfo|Failed to resolve|ConnectionError|URLError"
    r"|offline mode|LocalEntryNotFoundError|Max retries exceeded",
    re.IGNORECASE,
)
# Severity, time and thread, as every native log line begins.
_LOG_HEAD = re.compile(r"^F\d{4} [\d:.]+ +\d+ ")
_READ_ONLY = re.compile(r"Read-only file system", re.IGNORECASE)


def explain(result: Facts) -> str:
    """Returns the sentences for a result."""
    sentences = [_HOW[result.outcome](result), *_device_remarks(result)]
    return " ".join(sentence for sentence in sentences if sentence)


def place(frame: Frame | None) -> str:
    """Returns a frame as ``file:line in function: source``."""
    if frame is None:
        return ""
    function = "" if frame.function == "<module>" else f" in {frame.function}"
    source = f": {frame.source}" if frame.source else ""
    return f"{frame.file}:{frame.line}{function}{source}"


def _steps(result: Facts) -> str:
    if not result.steps:
        return ""
    noun = "optimizer step" if result.steps == 1 else "optimizer steps"
    text = f"{result.steps} {noun}"
    if len(result.losses) > 1:
        text += f", loss {result.losses[0]:.4g} -> {result.losses[-1]:.4g}"
    return text


def _after(result: Facts) -> str:
    return f" after {_steps(result)}" if result.steps else " before its first optimizer step"


def _stood(result: Facts) -> str:
    return f"Python stood at {place(result.stack[-1])}." if result.stack else ""


def _completed(result: Facts) -> str:
    steps = f" ({_steps(result)})" if result.steps else ""
    return f"The program finished{steps}."


def _stopped(result: Facts) -> str:
    text = f"The program was ended as asked after {_steps(result)}."
    if result.detail:
        text += f" It caught the request and had to be killed ({result.detail}); what it saves at its end is not there."
    return text


def _exception(result: Facts) -> str:
    error = result.exception
    if error is None:
        return _exit_nonzero(result)
    if error.missing:
        return _missing(result, error.missing)
    where = error.frames[-1] if error.frames else error.where
    text = "An exception ended " + ("the program" if error.rank is None else f"rank {error.rank}") + _after(result)
    text += f", at {place(where)}." if where else "."
    return " ".join([text, f"{_first_line(error).rstrip('.')}.", *_hints(result, error)])


def _first_line(error: ExceptionEvent) -> str:
    lines = error.message.strip().splitlines()
    if not lines:
        return error.type
    if "Traceback (most recent call last)" in error.message:
        # Raised again for a worker or thread: the original error stands at the end.
        return f"{lines[-1][:300]} ({error.type}: {lines[0][:100].rstrip('.:')})"
    return f"{error.type}: {lines[0][:300]}"


def _hints(result: Facts, error: ExceptionEvent) -> list[str]:
    hints = []
    on_device = result.device is not None and result.device.kind != "cpu"
    if on_device and error.frames and error.type == "RuntimeError" and _READS.search(error.frames[-1].source):
        hints.append(
            "Errors of the device come to light where a value is read;"
            " TORCH_TPU_LAUNCH_BLOCKING=1 in the environment names the operation's own line."
        )
    text = " ".join([error.type, error.message, *error.causes])
    if result.sandboxed and _NETWORK.search(text):
        hints.append("The sandbox has no network: fetch data and models beforehand, or switch the sandbox off.")
    if result.sandboxed and _READ_ONLY.search(text):
        hints.append(
            "The sandbox lets a program write in the working copy only: write there, or switch the sandbox off."
        )
    return hints


def _missing(result: Facts, module: str) -> str:
    package = module.partition(".")[0]
    error = result.exception
    where = place(error.frames[-1]) if error and error.frames else ""
    at = f" (needed at {where})" if where else ""
    return (
        f"The workload's interpreter {result.python} has no module {module!r}{at}. Install the package that"
        f" provides {package!r} in that interpreter, or name another interpreter with --python."
    )


def _exit_nonzero(result: Facts) -> str:
    last = result.output_tail.strip().splitlines()[-1:]
    said = f" Its last words: {last[0][:300]}" if last else " It printed nothing."
    return f"The program ended itself with exit code {result.exit_code}{_after(result)}, without an exception.{said}"


def _abort(result: Facts) -> str:
    if result.signal:
        why = _SIGNALS.get(result.signal, "native code ended it")
        text = f"The process died of {result.signal}{_after(result)}: {why}."
    else:
        text = f"Native code ended the process{_after(result)} (exit code {result.exit_code})."
    reason = f"The native log says: {_LOG_HEAD.sub('', result.fatal)[:400]}." if result.fatal else ""
    return " ".join(part for part in (text, reason, _stood(result)) if part)


def _time_limit(result: Facts) -> str:
    text = f"The program was still running at its time limit of {result.detail}{_after(result)}."
    return " ".join(part for part in (text, _failed_before(result), _stood(result)) if part)


def _hang(result: Facts) -> str:
    text = f"The program hung{_after(result)}: no output, no event and no processor use for {result.detail}."
    return " ".join(part for part in (text, _failed_before(result), _stood(result)) if part)


def _failed_before(result: Facts) -> str:
    """What one of several processes died of, while the others waited for it."""
    error = result.exception
    if error is None or error.rank is None:
        return ""
    where = error.frames[-1] if error.frames else error.where
    at = f", at {place(where)}" if where else ""
    return (
        f"Before that an exception ended rank {error.rank}{at}. {_first_line(error).rstrip('.')}."
        " The other ranks may have waited for it ever since."
    )


def _memory(result: Facts) -> str:
    ours = result.detail != "the machine's"
    what = f"it needed more than {result.detail}" if ours else "the machine had no more"
    return (
        f"The program was ended for its use of memory: {what}{_after(result)}."
        " Try a smaller batch or model, or raise the limit."
    )


def _disk(result: Facts) -> str:
    return (
        f"The program was ended because it wrote more than {result.detail}{_after(result)}."
        " Write less, or raise the limit."
    )


def _output(result: Facts) -> str:
    return (
        f"The program was ended because it printed {result.output_bytes} bytes, far more than the {result.detail}"
        " that are kept. Make it print less, or raise the limit."
    )


def _daemonised(result: Facts) -> str:
    return (
        "The program returned but left processes running in the background, which were ended:"
        f" {result.detail}. Run it in the foreground."
    )


def _not_started(result: Facts) -> str:
    return f"The program could not be started: {result.detail}."


def _interrupted(result: Facts) -> str:
    return f"Interrupted{_after(result)}; all its processes were ended."


def _device_remarks(result: Facts) -> list[str]:
    """Says what a good end does not say by itself: whether the device had any part in it."""
    if not result.outcome.good or (result.device is not None and result.device.kind == "cpu"):
        return []
    if result.device is None:
        # Without a note no program of it imported torch, which is no news to its author.
        return [f"Which device it ran on is not known ({result.notes[0]})."] if result.notes else []
    remarks = []
    if result.steps > result.device_steps:
        away = result.steps - result.device_steps
        remarks.append(f"{away} of {result.steps} steps trained parameters that were not on the TPU.")
    elif not result.steps and not result.device_ops:
        remarks.append("Nothing ran on the TPU.")
    return remarks


_SIGNALS = {
    "SIGABRT": "native code gave up (a failed check, or an uncaught C++ exception)",
    "SIGSEGV": "native code touched memory that is not its own",
    "SIGBUS": "a memory mapping failed, often a full /dev/shm",
    "SIGFPE": "native code divided by zero or the like",
    "SIGILL": "this processor lacks an instruction the program was built for",
    "SIGKILL": "something outside killed it, often the kernel for want of memory",
    "SIGTERM": "something outside asked it to end",
}

_HOW = {
    Outcome.COMPLETED: _completed,
    Outcome.STOPPED_AT_STEPS: _stopped,
    Outcome.EXCEPTION: _exception,
    Outcome.EXIT_NONZERO: _exit_nonzero,
    Outcome.ABORT: _abort,
    Outcome.TIME_LIMIT: _time_limit,
    Outcome.HANG: _hang,
    Outcome.MEMORY_LIMIT: _memory,
    Outcome.DISK_LIMIT: _disk,
    Outcome.OUTPUT_LIMIT: _output,
    Outcome.DAEMONISED: _daemonised,
    Outcome.NOT_STARTED: _not_started,
    Outcome.INTERRUPTED: _interrupted,
}
