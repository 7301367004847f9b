"""Reads pasted text, a log or a terminal's output, as what is left of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.run import RunOutput
from torchtpu import kinds

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):")
_LAST_LINE = re.compile(
    r"(?:(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure|Failed|Warning|Limit|Timeout|Unsupported)"
    r"|StopIteration|KeyError)(?::\s|$)"
)
_FRAME = re.compile(r'\s*File "([^"]+)", line (\d+), in (.+)')
_WARNING = re.compile(r"^(?:(.+?):(\d+): )?(?:[\w.]*Warning): (.+)$")
_TORCHTPU = re.compile(r"<TorchTpu/")
_NATIVE = re.compile(r"^\*\*\* |Check failed:|\.cc:\d+\]|^Fatal Python error")
_HANG = re.compile(r"[Ww]atchdog caught collective operation timeout|taken for a hang|DEADLINE_EXCEEDED.*barrier", re.I)
_RANK = re.compile(r"^\s*\[?rank\s?\d+\]?:?\s?|^\[default\d+\]:\s?", re.I)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?\s+")
_SIGNALS = (
    (re.compile(r"\bSIGSEGV\b|[Ss]egmentation fault"), "SIGSEGV"),
    (re.compile(r"\bSIGBUS\b|Bus error"), "SIGBUS"),
    (re.compile(r"\bSIGABRT\b|Aborted \(core dumped\)|^Aborted$|terminate called after", re.M), "SIGABRT"),
    (re.compile(r"\bSIGKILL\b|^Killed$|oom-kill|Out of memory: Killed process", re.M), "SIGKILL"),
)
_LOSS = re.compile(r"\b(?:train[_ ]?)?loss\b['\"]?\s*[:=]?\s*(nan|-?inf|[-+]?\d+\.\d+(?:e[-+]?\d+)?)\b", re.I)
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


def read_text(text: str) -> RunOutput:
    """What a text says of how a program ended: its exception, warnings, native log lines, signal and losses.

    Escape codes, time stamps at the head of lines and the rank prefixes of launchers are passed over. A lone error
    line counts as the exception too. What the text does not show stays empty; nothing is guessed.

    Args:
        text: The log, or whatever part of it was kept.
    """
    lines = [_plain(line) for line in text.splitlines()]
    errors = list(_exceptions(lines))
    signal = next((name for pattern, name in _SIGNALS if pattern.search("\n".join(lines))), None)
    output = RunOutput(
        outcome=_outcome(lines, errors, signal),
        explanation="",
        signal=signal,
        losses=_losses(lines),
        warnings=list(_warnings(lines)),
        native_tail=[line for line in lines if kinds.native_severity(line) or _NATIVE.search(line)],
        output_tail="\n".join(lines),
    )
    if errors:
        # The last one ended the program; those before it are what it was raised from, or other ranks.
        output.exception = {**errors[-1], "causes": [f"{e['type']}: {e['message']}" for e in errors[:-1]]}
    return output


def _outcome(lines: Sequence[str], errors: Sequence[object], signal: str | None) -> str:
    if any(_HANG.search(line) for line in lines):
        return "hang"
    return "exception" if errors else "abort" if signal else "unknown"


def _plain(line: str) -> str:
    return _STAMP.sub("", _RANK.sub("", _COLOUR.sub("", line)).rstrip("\r"))


def _exceptions(lines: Sequence[str]) -> Iterator[dict[str, object]]:
    starts = [number for number, line in enumerate(lines) if _TRACEBACK.search(line)]
    for number in starts:
        yield from _traceback(lines, number + 1)
    if starts:
        return
    frames = list(_frames(lines))  # of a traceback whose head was not pasted
    for number, line in enumerate(lines):
        if _LAST_LINE.match(line.strip()) and not _WARNING.match(line):
            yield _said(lines, number, frames)
            return


def _frames(lines: Sequence[str]) -> Iterator[dict[str, object]]:
    for number, line in enumerate(lines):
        if frame := _FRAME.match(line):
            following = lines[number + 1].strip() if number + 1 < len(lines) else ""
            source = "" if _FRAME.match(following) else following
            yield {"file": frame[1], "line": int(frame[2]), "function": frame[3].strip(), "source": source}


def _traceback(lines: Sequence[str], first: int) -> Iterator[dict[str, object]]:
    for number in range(first, len(lines)):
        line = lines[number]
        if _TRACEBACK.search(line):
            return
        elif line and not line[0].isspace() and re.match(r"[A-Za-z_][\w.]*(?::\s|$)", line):
            yield _said(lines, number, list(_frames(lines[first:number])))
            return


def _said(lines: Sequence[str], number: int, frames: list[dict[str, object]]) -> dict[str, object]:
    kind, _, message = lines[number].strip().partition(": ")
    more: list[str] = []
    for line in lines[number + 1 :]:
        if not line.strip() or _TRACEBACK.search(line) or line.startswith(_CHAINED) or len(more) >= 40:
            break
        more.append(line)
    own = [frame for frame in frames if _is_own(str(frame["file"]))]
    return {
        "type": kind.rstrip(":"),
        "message": "\n".join([message, *more]),
        "frames": own or frames[-1:],
        "where": frames[-1] if frames else {},
    }


def _is_own(file: str) -> bool:
    return "site-packages" not in file and "dist-packages" not in file and "/lib/python" not in file and file[:1] != "<"


def _warnings(lines: Sequence[str]) -> Iterator[dict[str, object]]:
    for line in lines:
        found = _WARNING.match(line.strip())
        if found or _TORCHTPU.search(line):
            file, number, message = found.groups() if found else (None, None, line.strip())
            place = {"file": file, "line": int(number) if number else None}
            yield {"kind": kinds.warning_kind(message), "message": message, **place}


def _losses(lines: Sequence[str]) -> list[float]:
    return [float(found[1]) for line in lines if (found := _LOSS.search(line))]
