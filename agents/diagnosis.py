"""From how a run ended to whose fault it is, the cause, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from agents import import_paths
from agents.state import Diagnosis, Owner, RunRecord
from tools.commands import named_files, parse
from tools.diagnose import Cause, Confidence
from tools.diagnose import diagnose as known_causes
from tools.run import RunOutput

_LIMITS = {
    "time-limit": "Give it more time with --timeout, or fewer steps with --steps.",
    "hang": "See where it waits in the log; --idle-timeout sets how long silence is taken for a hang.",
    "memory-limit": "Make the batch or the model smaller, or raise --memory.",
    "disk-limit": "It wrote more than it may; look for checkpoints or logs written at every step.",
    "output-limit": "It printed more than it may; lower its logging.",
}
_BACKEND = re.compile(r"is not implemented for TPU|file a feature request|not supported on TPU|UNIMPLEMENTED", re.I)
_SIMULATOR = re.compile(r"simulat", re.I)
_MISSING = re.compile(r"No module named '([\w.]+)'")
_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|out of memory", re.I)
_TAIL = 64 * 1024
_ENTRY_AT_FAULT = frozenset({"own-module", "missing-data", "usage", "not-started"})
"""Kinds that say more than any known cause: the program was not started as it should be."""


def explain(record: RunRecord, root: Path) -> Diagnosis:
    """The diagnosis of a run that did not end well.

    Args:
        record: The run.
        root: The migrated tree.
    """
    kind, owner, cause, remedy = _judge(record, root)
    found = [] if kind in _ENTRY_AT_FAULT else known_causes(_seen(record))
    known = found[0] if found and _says_more(found[0], record) else None
    if known is not None:
        owner, remedy = Owner(known.owner), known.remedy
        cause = f"{cause.rstrip('.')}. {known.cause}"
    return Diagnosis(
        kind=kind,
        owner=owner,
        cause=cause,
        remedy=remedy,
        where=_where(record.exception),
        module=_missing(record.exception or {}),
        entry=record.entry,
        attempt=record.attempt,
        knowledge=known.entry if known else None,
        confidence=known.confidence.value if known else None,
        rules=known.rules if known else [],
        others=[each.entry for each in found if each is not known],
    )


def _says_more(cause: Cause, record: RunRecord) -> bool:
    """Whether a known cause may stand for the failure: what was only printed explains no exception."""
    return record.exception is None or cause.confidence is not Confidence.POSSIBLE


def _seen(record: RunRecord) -> RunOutput:
    """What is left of a run, with the end of its log."""
    output = ""
    if record.log:
        try:
            output = Path(record.log).read_bytes()[-_TAIL:].decode("utf-8", "replace")
        except OSError:
            output = ""
    return RunOutput(
        outcome=record.outcome,
        explanation=record.explanation,
        signal=record.signal,
        losses=record.losses,
        warnings=record.warnings,
        exception=record.exception,
        native_tail=record.native_tail,
        output_tail=output,
    )


_Judgement = tuple[str, Owner, str, str]


def _judge(record: RunRecord, root: Path) -> _Judgement:
    if record.exception:
        return _exception(record, root)
    if record.outcome in _LIMITS:
        return record.outcome, Owner.CODE, record.explanation, _LIMITS[record.outcome]
    if record.outcome == "abort":
        return _abort(record)
    if record.outcome == "daemonised":
        remedy = "Run the part in the foreground; what goes on without its parent cannot be checked."
        return "daemonised", Owner.CODE, record.explanation, remedy
    if record.outcome == "not-started":
        return "not-started", Owner.ENVIRONMENT, record.explanation, "See: torchtpu-agent doctor"
    if record.outcome == "exit-nonzero" and record.exit_code == 2:
        remedy = "Check the arguments of the entry."
        return "usage", Owner.CODE, record.explanation, remedy
    return record.outcome, Owner.CODE, record.explanation, f"Its output is in {record.log}."


def _abort(record: RunRecord) -> _Judgement:
    if _SIMULATOR.search("\n".join(record.native_tail)):
        return "abort", Owner.SIMULATOR, record.explanation, f"The last native lines are in {record.log}."
    # Python's own last words tell that native code ended it, but not whose.
    if record.backend_frame or (record.fatal and not record.fatal.startswith("Fatal Python error")):
        return "abort", Owner.BACKEND, record.explanation, f"The last native lines are in {record.log}."
    remedy = f"Nothing shows that it was the backend that ended it. Its output is in {record.log}."
    return "abort", Owner.CODE, record.explanation, remedy


def _exception(record: RunRecord, root: Path) -> _Judgement:
    exception = record.exception or {}
    name, message = str(exception.get("type", "")), str(exception.get("message", ""))
    where = _where(exception)
    cause = f"{name}: {message.splitlines()[0] if message else ''}" + (f" at {where}" if where else "")
    missing = _missing(exception)
    if missing and (folder := _own_folder(missing, root, record)) is not None:
        remedy = f"Put the folder that holds it on the path: PYTHONPATH={folder or '.'}"
        return "own-module", Owner.CODE, cause, remedy
    if missing:
        top = missing.split(".")[0]
        remedy = f"Install {top} into the program's interpreter, or choose one that has it with --python."
        return "missing-dependency", Owner.ENVIRONMENT, f"The program needs the package {top}.", remedy
    if name.endswith("FileNotFoundError"):
        remedy = "Bring the data into the checkout (untracked is fine), or make it with --setup."
        return "missing-data", Owner.ENVIRONMENT, cause, remedy
    if "SimulatorLimit" in name or exception.get("owner") == "simulator":
        return "simulator-limit", Owner.SIMULATOR, cause, "This says nothing about a TPU; try on one."
    if _OUT_OF_MEMORY.search(message):
        return "out-of-memory", Owner.CODE, cause, "Make the batch or the model smaller."
    if _BACKEND.search(message):
        return "backend", Owner.BACKEND, cause, "The backend lacks this operation; see the report for the place."
    return "exception", Owner.CODE, cause, f"The whole traceback is in {record.log}."


def _missing(exception: dict[str, Any]) -> str | None:
    match = _MISSING.search(str(exception.get("message", "")))
    return str(exception["missing"]) if exception.get("missing") else match[1] if match else None


def _own_folder(module: str, root: Path, record: RunRecord) -> str | None:
    """Where in the tree a module is that the program did not find."""
    scripts = named_files(parse(record.entry), root)
    return import_paths.holding(module, root, "", scripts)


def _where(exception: dict[str, Any] | None) -> str | None:
    frames = (exception or {}).get("frames") or []
    if not frames:
        return None
    last = frames[-1]
    return f"{last.get('file')}:{last.get('line')}"
