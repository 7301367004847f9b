"""Sorts warnings and native log lines: what they mean for a run, and which of them a person need not see."""

from __future__ import annotations

import re

CPU_FALLBACK = "cpu-fallback"
AMP_DISABLED = "amp-disabled"
TORCHTPU = "torchtpu"
OTHER = "other"


# The simulated device sets XLA_FLAGS; a program that does not is not to be warned about them.
OWN_DOING = "<TorchTpu/ApiStage/ExperimentalApi/> the XLA_FLAGS"

_FALLBACK = re.compile(
    r"fall(?:s|ing)?[ -]?back (?:to|on)(?: run(?:ning)? on)? (?:the )?cpu|cpu[ _-]fallback"
    r"|will fall back to run on the cpu",
    re.IGNORECASE,
)
_AMP = re.compile(
    r"disabling autocast|autocast\b.*\bdisabl|gradscaler\b.*(?:disabl|not available)"
    r"|device_type of '\w+', but \w+ is not available",
    re.IGNORECASE | re.DOTALL,
)

_GLOG = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d+")
_TENSORFLOW = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([IWEF]) ")
_C10 = re.compile(r"^\[(?:rank\d+\]:\[)?([IWEF])\d{3,4} \d\d:\d\d:\d\d\.\d+ .*?\] ?(.*)")
_FATAL = re.compile(
    r"^(?:terminate called|  what\(\):|LLVM ERROR|Fatal Python error)|Check failed: |: Assertion `.*' failed"
)
_FIRST = frozenset("IWEFSRDLPnpt*[ \t0123456789")
_CHATTER = re.compile(
    r"^WARNING: (?:All log messages before absl::InitializeLog|Logging before InitGoogle)"
    r"|^(?:num_cache_(?:reqs|hits)|num_compilations|peak_compilation_memory_bytes)="
    r"|^Successfully renamed PrivateUse1 backend to "
    r"|^Registered Python module for 'tpu'|^Device type: tpu, Device index: |^Initializing TPU distributed runtime"
    r"|^\*\*\* (?:Check failure stack trace|SIG\w+ |Aborted at )|^PC: @ |^\s+@\s+0x[0-9a-f]+"
)


def warning_kind(message: str) -> str:
    """Returns what a warning means for a run on a TPU: one of this module's four kinds."""
    if _FALLBACK.search(message):
        return CPU_FALLBACK
    if _AMP.search(message):
        return AMP_DISABLED
    return TORCHTPU if message.startswith("<TorchTpu/") else OTHER


def native_severity(line: str) -> str | None:
    """Returns the severity of a line of the native log.

    Args:
        line: One line of output, without its end.

    Returns:
        ``I``, ``W``, ``E`` or ``F``, or None for a line that is the program's own.
    """
    # A program may print millions of lines: most are none of these by their first character.
    if line[:1] not in _FIRST and "Check failed: " not in line and ": Assertion `" not in line:
        return None
    if _FATAL.search(line):
        return "F"
    match = _GLOG.match(line) or _TENSORFLOW.match(line) or _C10.match(line)
    if match:
        return match[1]
    return "I" if _CHATTER.match(line) else None


def native_warning(line: str) -> str | None:
    """Returns the message of a warning in the native log, or None for a line that is none worth telling.

    PyTorch's own are all told; of TorchTPU's and XLA's only those that mean something for a run.
    """
    match = _C10.match(line)
    if match is not None and match[1] == "W":
        return match[2].removeprefix("Warning: ")
    match = _GLOG.match(line)
    if match is None or match[1] != "W" or warning_kind(line) == OTHER:
        return None
    return line.partition("] ")[2]
