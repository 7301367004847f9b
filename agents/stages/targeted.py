"""Stages `fits` and `fast`: what the real compiler says of a step for a named TPU."""

from __future__ import annotations

from agents.stages.common import failed, not_run, passed
from agents.state import State, Verdict
from tools.profile import ProfileOutput
from tools.profiles.text import place, seconds, size


def reason(state: State) -> str | None:
    """Why nothing is profiled; None where it is."""
    if state.request.dry_run:
        return "a dry run starts no program"
    if state.request.target is None:
        return "no TPU is named; give one with --target, such as v6e-8"
    if not state.entries:
        return "no entry command is known; give one with --entry"
    if not all(record.ended_well for record in state.latest):
        return "the program does not run"
    return None


def before(stage: str, state: State) -> Verdict:
    """What is known of one of the two before the profile, which comes after the other stages."""
    return not_run(stage, reason(state) or "the profile comes after this")


def impossible(why: str) -> tuple[Verdict, Verdict]:
    """Both where no step could be recorded, lowered or compiled."""
    return not_run("fits", why), not_run("fast", why)


def verdicts(output: ProfileOutput, evidence: list[str]) -> tuple[Verdict, Verdict]:
    """Both stages from a profile."""
    if output.outcome == "out-of-memory":
        message = next(iter(output.profile["message"].splitlines()), "")
        why = f"a step does not fit {output.target}: {message[:300]}"
        return failed("fits", why, evidence), not_run("fast", "the step does not fit", evidence)
    if output.outcome != "ok":
        said = " ".join(output.profile["message"].split())[:300]
        return impossible(f"the compilation for {output.target} ended with {output.outcome}: {said}")
    memory = output.profile["memory"]
    limit = size(memory["limit"])
    fitting = passed("fits", f"a step takes {size(memory['peak'])} of {limit} of {output.target}", evidence)
    return fitting, _speed(output, evidence)


def _speed(output: ProfileOutput, evidence: list[str]) -> Verdict:
    time, waste = output.profile["time"], output.profile["waste"]
    share = f", {time['mfu']:.1%} of the peak" if time["mfu"] else ""
    estimate = (
        f"estimated, not measured: {seconds(time['seconds'])} a step"
        f" ({seconds(time['low'])} to {seconds(time['high'])}){share} on {output.target}"
    )
    waits = sorted({place(row) for row in waste["host_reads"]})
    if waits:
        return failed("fast", f"the step waits for a value at {', '.join(waits[:5])}; {estimate}", evidence)
    return not_run("fast", f"that nothing is compiled again after warm-up is not checked; {estimate}", evidence)
