"""Compares what two recorded runs computed: figures stage by stage, and where they first part."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from torchtpu.proof import judge
from torchtpu.proof.ratio import FLOAT32, LOW
from torchtpu.proof.recording import Recording, read_folder


class CompareRequest(BaseModel):
    """Which recordings to compare, and how strictly."""

    reference: Path = Field(description="recording of the original")
    units: list[Path] = Field(description="runs that show what rounding alone does to the reference")
    candidate: Path = Field(description="recording of the run that is judged")
    precision: Literal["float32", "low"] = Field(description="what the units are of")
    strict: bool = Field(default=True, description="compare calls, modes, schedules, ties and batches too")
    device: str | None = Field(default=None, description="type of the device that the candidate should compute on")


class Problem(BaseModel):
    """One way in which a run is not the reference."""

    model_config = ConfigDict(from_attributes=True)

    stage: str
    kind: str
    message: str
    name: str = ""
    place: str = Field(default="", description="the user's file:line")
    step: int | None = None
    ratio: float | str | None = None
    process: str = ""


class Figures(BaseModel):
    """What was compared for one stage."""

    compared: int = 0
    identical: int = Field(default=0, description="those that are the same bit for bit")
    worst: float | str = Field(default=0.0, description="largest error ratio")
    worst_at: str = ""
    relative: float | str = Field(default=0.0, description="relative error there")
    by_name: dict[str, float | str] = Field(
        default={}, description="largest error ratio of each module or parameter, as they were computed"
    )


class CompareOutput(BaseModel):
    """What comparing came to."""

    figures: dict[str, Figures] = {}
    problems: list[Problem] = []

    def of(self, stage: str) -> list[Problem]:
        """The problems of one stage, the one to look at first in front."""
        return [problem for problem in self.problems if problem.stage == stage]


def compare(request: CompareRequest) -> CompareOutput:
    """Read the recordings and compare them."""
    found = judge.compare(
        read_folder(request.reference),
        [read_folder(path) for path in request.units],
        read_folder(request.candidate),
        scale=FLOAT32 if request.precision == "float32" else LOW,
        strict=request.strict,
        device=request.device,
    )
    return CompareOutput.model_validate(found.to_json())


def first_difference(one: Path, other: Path) -> str | None:
    """Where two runs stop being the same bit for bit; None when they never do."""
    mine, theirs = read_folder(one), read_folder(other)
    if set(mine) != set(theirs):
        return f"{len(mine)} processes computed in one, {len(theirs)} in the other"
    for process in mine:
        found = _first(mine[process], theirs[process])
        if found is not None:
            return found
    return None


def _first(one: Recording, other: Recording) -> str | None:
    calls = {call.key: call for call in other.calls}
    for call in one.calls:
        seen = calls.get(call.key)
        if seen is None:
            return f"{call.name}, called at step {call.step}"
        for which, mine, theirs in (("input", call.inputs, seen.inputs), ("output", call.outputs, seen.outputs)):
            if any(path not in theirs or not tensor.same_bits(theirs[path]) for path, tensor in mine.items()):
                return f"{which} of {call.name} at step {call.step}"
    return _first_scalar(one, other)


def _first_scalar(one: Recording, other: Recording) -> str | None:
    losses = [str(loss.value) for loss in one.losses], [str(loss.value) for loss in other.losses]
    norms = [str(step.norm) for step in one.steps], [str(step.norm) for step in other.steps]
    for what, (values, others) in (("loss", losses), ("gradient norm", norms)):
        if len(values) != len(others):
            return f"{len(values)} values of {what} in one, {len(others)} in the other"
        for number, (a, b) in enumerate(zip(values, others, strict=True), 1):
            if a != b:
                return f"{what} number {number}: {a} and {b}"
    return _first_state(one, other)


def _first_state(one: Recording, other: Recording) -> str | None:
    for shot, seen in zip(one.snapshots, other.snapshots, strict=False):
        for what, mine, theirs in (
            ("parameter", shot.parameters, seen.parameters),
            ("buffer", shot.buffers, seen.buffers),
            ("optimizer state", shot.memory, seen.memory),
        ):
            for name, tensor in mine.items():
                if name not in theirs or not tensor.same_bits(theirs[name]):
                    return f"{what} {name} after step {shot.count}"
    return None


def is_empty(folder: Path) -> bool:
    """Whether a run recorded nothing that could be compared."""
    return not read_folder(folder)


def num_backwards(folder: Path) -> int:
    """How many backward passes the busiest process made."""
    return max((len(recording.losses) for recording in read_folder(folder).values()), default=0)


def left_on_cpu(folder: Path) -> tuple[str, str] | None:
    """The first module the program itself calls with a tensor of the CPU, where others are on a device.

    Returns:
        What to say of it, and the user's line; None where there is none.
    """
    for recording in read_folder(folder).values():
        for call in recording.calls:
            host = [path for path, tensor in call.inputs.items() if tensor.device == "cpu"]
            if host and "." not in call.name and not call.outputs:
                places = recording.modules.get(call.name, {}).get("called") or {}
                place = f"{places['file']}:{places['line']}" if places else ""
                return f"input {host[0]} of {call.name}, called at {place}, is on the CPU", place
    return None
