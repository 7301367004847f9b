"""Check `device`: every entry comes to its own end on the TPU, having taken its steps there."""

from __future__ import annotations

from evals.scorers.case import Case, Outcome, ended_badly
from tools.run import RunOutput
from torchtpu import kinds

_FORBIDDEN = (kinds.CPU_FALLBACK, kinds.AMP_DISABLED)


def check(case: Case) -> Outcome:
    """Run the entries on the device."""
    for command in case.entries():
        output = case.migrated(command, "device")
        found = ended_badly(output) or _elsewhere(output, case.task.checks.steps)
        if found:
            return found
    return Outcome("pass")


def _elsewhere(output: RunOutput, steps: int) -> Outcome | None:
    if (output.device or {}).get("kind") not in ("hardware", "simulated"):
        return Outcome("fail", "no TPU was used")
    if steps and (output.device_steps < steps or output.device_steps < output.steps):
        return Outcome("fail", f"{output.device_steps} of {output.steps} optimizer steps on the TPU, {steps} are due")
    if not output.device_ops and not output.device_steps:
        return Outcome("fail", "nothing was computed on the TPU")
    warned = [warning for warning in output.warnings if warning.get("kind") in _FORBIDDEN]
    return Outcome("fail", str(warned[0].get("message", ""))[:200]) if warned else None
