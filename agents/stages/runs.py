"""Stage `runs`: every entry ends well on the device, without falling back to the CPU or losing AMP."""

from __future__ import annotations

import re
from pathlib import Path

from agents.context import Context
from agents.stages.common import failed, not_run, passed, worst
from agents.state import Diagnosis, Owner, RunRecord, State, Verdict
from tools.log_text import read_text
from torchtpu import kinds

_READ = 1 << 20
_OF_DEVICE = re.compile(r"not (implemented|supported) (for|on) (the )?'?tpu\b|\bXlaRuntimeError\b", re.I)
_FORBIDDEN = {
    kinds.CPU_FALLBACK: "fell back to the CPU",
    kinds.AMP_DISABLED: "automatic mixed precision was disabled",
}


def runs(state: State, _context: Context) -> Verdict:
    """Judge the newest run of each entry; the worst of them is the stage's verdict."""
    if state.request.dry_run:
        return not_run("runs", "a dry run starts no program")
    if not state.latest:
        return not_run("runs", "no entry command is known; give one with --entry")
    on_cpu = state.request.device == "cpu"
    asked = state.request.steps
    verdicts = [judge(record, _diagnosis(record, state), on_cpu=on_cpu, asked=asked) for record in state.latest]
    return worst(verdicts)


def judge(record: RunRecord, diagnosis: Diagnosis | None, *, on_cpu: bool = False, asked: int | None = None) -> Verdict:
    """The verdict on one run.

    Args:
        record: The run.
        diagnosis: Why it failed, if it did.
        on_cpu: Whether the user wanted it on the CPU.
        asked: Optimizer steps after which it was to be stopped.
    """
    evidence = [part for part in (record.command, record.log, record.result) if part]
    if not record.ended_well:
        return _ended_badly(record, diagnosis, evidence)
    kind = (record.device or {}).get("kind")
    if kind == "cpu" or on_cpu:
        return not_run("runs", "it ran on the CPU, which says nothing about a TPU", evidence)
    if record.without_torch:
        return failed(
            "runs", f"'{record.entry}' ended well, but never imported torch: nothing of it ran on the TPU", evidence
        )
    if kind not in ("hardware", "simulated"):
        return not_run(
            "runs", f"no device was reported by '{record.entry}', so nothing is claimed. {record.explanation}", evidence
        )
    if not record.device_steps and not record.device_ops:
        return failed("runs", f"'{record.entry}' ended well, but nothing of it ran on the TPU", evidence)
    if record.steps and not record.device_steps:
        return failed("runs", f"none of its {record.steps} optimizer steps was on the TPU", evidence)
    for warning in record.warnings:
        if said := _FORBIDDEN.get(str(warning.get("kind"))):
            return failed("runs", f"{said}: {_warning(warning)}", evidence)
    error = _caught(record)
    if error and _OF_DEVICE.search(error):
        return failed("runs", f"the program caught an error of the device and went on: {error}", evidence)
    amount = f"{record.device_steps} steps" if record.device_steps else f"{record.device_ops} operations"
    short = bool(asked and 0 < record.device_steps < asked and record.outcome == "completed")
    early = f"; the program ended by itself before the {asked} that were asked for" if short else ""
    shown = f"; its output shows an exception that it caught: {error}" if error else ""
    return passed("runs", f"{amount} on the {kind} device, {record.duration:.0f} s{early}{shown}", evidence)


def _caught(record: RunRecord) -> str | None:
    """The last error in the output of a program that ended well all the same."""
    if not record.log or not Path(record.log).is_file():
        return None
    with Path(record.log).open("rb") as log:
        log.seek(max(0, log.seek(0, 2) - _READ))
        text = log.read().decode("utf-8", "replace")
    found = read_text(text).exception
    if found:
        return f"{found['type']}: {found['message']}".splitlines()[0]
    # What was printed of it may be its message alone. Warnings, and lines of the native log, are about other things.
    said = (line.strip() for line in text.splitlines())
    said = (line for line in said if "Triggered internally" not in line and not kinds.native_severity(line))
    return next((line for line in said if _OF_DEVICE.search(line)), None)


def _ended_badly(record: RunRecord, diagnosis: Diagnosis | None, evidence: list[str]) -> Verdict:
    if diagnosis is None:
        return failed("runs", record.explanation, evidence)
    if diagnosis.owner in (Owner.ENVIRONMENT, Owner.SIMULATOR):
        return not_run("runs", f"{diagnosis.cause} {diagnosis.remedy}".strip(), evidence, diagnosis.owner)
    return failed("runs", diagnosis.cause, evidence, diagnosis.owner)


def _diagnosis(record: RunRecord, state: State) -> Diagnosis | None:
    mine = [d for d in state.diagnoses if d.entry == record.entry and d.attempt == record.attempt]
    return mine[0] if mine else None


def _warning(warning: dict[str, object]) -> str:
    message = str(warning.get("message", "")).splitlines()
    place = f" at {warning['file']}:{warning.get('line')}" if warning.get("file") else ""
    return (message[0] if message else "") + place
