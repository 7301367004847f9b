"""Compares what two runs of a program computed, and says where they first part.

Which of the three stages a difference belongs to: `forward` (module outputs, batches, initial weights), `gradients`
(of module outputs and parameters), `trains` (steps, losses, learning rates, parameters, statistics, ties).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from torchtpu.proof.ratio import Scale
from torchtpu.proof.recording import Recording, Snapshot, Step

FORWARD, GRADIENTS, TRAINS = "forward", "gradients", "trains"
MOST_NAMES = 2000
"""Modules and parameters whose ratios are told one by one."""


@dataclass(frozen=True)
class Problem:
    """One way in which a run is not the reference.

    Attributes:
        stage: The stage it belongs to.
        kind: ``error`` (numbers), ``structure``, ``data``, ``weights``, ``device``, ``degenerate``, ``schedule``,
            ``statistics`` or ``ties``.
        message: What differs, for a person.
        name: The module, parameter or buffer.
        place: The user's line, ``file:line``, where one is known.
        step: The optimizer step.
        ratio: The error ratio, for ``error``.
        process: Which process of the program.
    """

    stage: str
    kind: str
    message: str
    name: str = ""
    place: str = ""
    step: int | None = None
    ratio: float | None = None
    process: str = ""


@dataclass
class Figures:
    """What was compared for one stage, and the largest error ratio.

    Attributes:
        by_name: The largest ratio of each module or parameter, in the order in which they were computed.
    """

    compared: int = 0
    identical: int = 0
    worst: float = 0.0
    worst_at: str = ""
    relative: float = 0.0
    by_name: dict[str, float] = field(default_factory=dict)

    def saw(self, ratio: float, relative: float, what: str, name: str = "") -> None:
        """Takes in the error of one tensor or number, of the module or parameter of that name."""
        self.compared += 1
        self.identical += relative == 0.0
        if name and (name in self.by_name or len(self.by_name) < MOST_NAMES):
            self.by_name[name] = max(ratio, self.by_name.get(name, 0.0))
        if ratio > self.worst:
            self.worst, self.worst_at, self.relative = ratio, what, relative


@dataclass
class Comparison:
    """What comparing two runs came to."""

    figures: dict[str, Figures] = field(
        default_factory=lambda: {stage: Figures() for stage in (FORWARD, GRADIENTS, TRAINS)}
    )
    problems: list[Problem] = field(default_factory=list)

    def of(self, stage: str) -> list[Problem]:
        """The problems of one stage, the one to look at first in front."""
        return [problem for problem in self.problems if problem.stage == stage]

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; what is not finite is text."""

        def plain(value: Any) -> Any:
            if isinstance(value, float) and not math.isfinite(value):
                return str(value)
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            return [plain(item) for item in value] if isinstance(value, list) else value

        return dict(plain(asdict(self)))


_Counted = TypeVar("_Counted", Step, Snapshot)


def _same(reference: Iterable[_Counted], candidate: Iterable[_Counted]) -> Iterator[tuple[_Counted, _Counted]]:
    theirs = {(one.optimizer, one.count): one for one in candidate}
    for one in reference:
        if (one.optimizer, one.count) in theirs:
            yield one, theirs[one.optimizer, one.count]


@dataclass(frozen=True)
class Sides:
    """The runs of one process that are compared.

    Attributes:
        reference: The original, on the CPU.
        jitters: Runs that say what rounding alone does to it.
        candidate: The run that is judged.
        scale: What counts as an error.
        strict: Whether structure is compared too, besides numbers.
        device: The device that the candidate should compute on.
        diverged: The step after which all is a consequence: the first whose loss, gradient norm or state is off.
    """

    reference: Recording
    jitters: Sequence[Recording]
    candidate: Recording
    scale: Scale
    strict: bool = True
    device: str | None = None
    diverged: float = math.inf

    @property
    def limit(self) -> float:
        """Error ratio above which a difference counts."""
        return self.scale.limit

    def steps(self) -> Iterator[tuple[Step, Step]]:
        """Steps of the same optimizer with the same count, of reference and candidate."""
        return _same(self.reference.steps, self.candidate.steps)

    def snapshots(self) -> Iterator[tuple[Snapshot, Snapshot]]:
        """Snapshots after such steps."""
        return _same(self.reference.snapshots, self.candidate.snapshots)

    def place(self, name: str, inside: bool = False) -> str:
        """The user's line that calls a module, else the one that defines it.

        Args:
            name: The module, or another thing whose place was recorded.
            inside: The line that defines its forward is asked for first, where that is the user's.
        """
        for recording in (self.candidate, self.reference):
            places = recording.modules.get(name, {})
            for which in ("defined", "called") if inside else ("called", "defined"):
                if places.get(which):
                    return f"{places[which]['file']}:{places[which]['line']}"
        return ""

    def source(self) -> tuple[str, str]:
        """Where what differs may come from: a data loader with other settings or batches, else another random draw.

        Returns:
            What differs, and the user's line; both empty where nothing does.
        """
        for mine, theirs in zip(self.reference.loaders, self.candidate.loaders, strict=False):
            for option in ("length", "batch_size", "drop_last", "sampler"):
                if mine.get(option) != theirs.get(option) and theirs.get("place"):
                    place = f"{theirs['place']['file']}:{theirs['place']['line']}"
                    told = {"length": "the data set's length", "sampler": "the sampler"}.get(option, option)
                    said = (
                        f"{told} of the data loader made at {place} is {theirs.get(option)}, {mine.get(option)} before"
                    )
                    return said, place
        for mine, theirs in zip(self.reference.batches, self.candidate.batches, strict=False):
            if mine["loader"] == theirs["loader"] and mine["items"] != theirs["items"]:
                item = next((k for k in theirs["items"] if mine["items"].get(k) != theirs["items"][k]), "")
                made = self.candidate.loaders[theirs["loader"] - 1 : theirs["loader"]] if theirs["loader"] else []
                where = made[0]["place"] if made else None
                place = f"{where['file']}:{where['line']}" if where else ""
                said = f"item {item or '0'} of batch {mine['number']} is another"
                return f"{said} in the data loader made at {place}" if place else said, place
        for mine, theirs in zip(self.reference.draws, self.candidate.draws, strict=False):
            if [mine[key] for key in ("op", "shape", "dtype")] != [theirs[key] for key in ("op", "shape", "dtype")]:
                place = str(theirs["where"])
                said = f"random draw {mine['number']} is {theirs['op']} {theirs['shape']}"
                return f"{said}, {mine['op']} {mine['shape']} before{f', at {place}' if place else ''}", place
        return "", ""

    def described(self, name: str) -> str:
        """A module with its class and where it is called."""
        kind = (self.reference.modules.get(name) or self.candidate.modules.get(name) or {}).get("type", "")
        place = self.place(name)
        return f"{name} ({kind}{f', called at {place}' if place else ''})"


def shown(ratio: float) -> str:
    """An error ratio as people read it."""
    return "infinite" if math.isinf(ratio) else f"{ratio:.3g}"
