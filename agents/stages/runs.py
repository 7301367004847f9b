"""Stage `runs`: every entry ends well on the device, without falling back to the CPU or losing AMP."""

from __future__ import annotations

from agents.context import Context
from agents.stages.common import failed, not_run, passed, worst
from agents.state import Diagnosis, Owner, RunRecord, State, Verdict

_FORBIDDEN = {"cpu-fallback": "fell back to the CPU", "amp-disabled": "automatic mixed precision was disabled"}


def runs(state: State, _context: Context) -> Verdict:
    """Judge the newest run of each entry; the worst of them is the stage's verdict."""
    if state.request.dry_run:
        return not_run("runs", "a dry run starts no program")
    if not state.latest:
        return not_run("runs", "no entry command is known; give one with --entry")
    on_cpu = state.request.device == "cpu"
    verdicts = [judge(record, _diagnosis(record, state), on_cpu=on_cpu) for record in state.latest]
    return worst(verdicts)


def judge(record: RunRecord, diagnosis: Diagnosis | None, *, on_cpu: bool = False) -> Verdict:
    """The verdict on one run, which the user may have asked to be on the CPU."""
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
    amount = f"{record.device_steps} steps" if record.device_steps else f"{record.device_ops} operations"
    return passed("runs", f"{amount} on the {kind} device, {record.duration:.0f} s", evidence)


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
