"""Compares the recordings of two runs of one program, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from torchtpu.proof.checks import forward, gradients, training
from torchtpu.proof.compare import FORWARD, Comparison, Problem, Sides
from torchtpu.proof.ratio import Scale
from torchtpu.proof.recording import Recording


def compare(
    reference: dict[str, Recording],
    jitters: Sequence[dict[str, Recording]],
    candidate: dict[str, Recording],
    *,
    scale: Scale,
    strict: bool = True,
    device: str | None = None,
) -> Comparison:
    """Compares all processes of two runs.

    Args:
        reference: Recordings of the original by process.
        jitters: The runs that give the unit of error.
        candidate: Recordings of the run that is judged.
        scale: What counts as an error in the runs' precision.
        strict: Compare structure too: calls, modes, schedules, ties. Without it, as in low precision, module outputs
            and gradients count in the first step only: an adaptive optimizer turns the sign of a gradient near zero
            into a whole step, and one run is no measure of how often. Losses and norms count in every step.
        device: Type of the device that the candidate should compute on, such as ``tpu``.
    """
    made = Comparison()
    if strict and set(reference) != set(candidate):
        said = f"{len(reference)} processes computed in the original, {len(candidate)} in the migrated program"
        made.problems.append(Problem(FORWARD, "structure", said))
    for process in sorted(set(reference) & set(candidate)):
        near = [jitter[process] for jitter in jitters if process in jitter]
        sides = Sides(reference[process], near, candidate[process], scale, strict, device)
        sides = replace(sides, diverged=training.diverged(sides) if strict else 1)
        for check in (forward.check, gradients.check, training.check):
            found = check(sides, made.figures)
            made.problems += [_of(problem, process) for problem in found]
    return made


def _of(problem: Problem, process: str) -> Problem:
    return Problem(**{**asdict(problem), "process": process})
