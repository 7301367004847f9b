"""Reads what a recorder wrote, without torch."""

from __future__ import annotations

import array
import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

LOW = {"float16", "bfloat16"}


@dataclass(frozen=True)
class Tensor:
    """A sketched tensor; see `torchtpu.proof.sketch` for its fields."""

    data: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.data["shape"])

    @property
    def dtype(self) -> str:
        """Its dtype, such as ``float32``."""
        return str(self.data["dtype"])

    @property
    def device(self) -> str:
        """Type of the device it was on."""
        return str(self.data["device"])

    @property
    def is_float(self) -> bool:
        """Whether it has numbers whose distance means something."""
        return "norm" in self.data

    @property
    def norm(self) -> float:
        """Euclidean norm of its finite elements."""
        return float(self.data.get("norm", 0.0))

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def odd(self) -> int:
        """How many elements are not finite."""
        return int(self.data.get("odd", 0))

    @property
    def degenerate(self) -> str | None:
        """Why its equality with another would show nothing; None when it would."""
        if not self.is_float or not self.size:
            return None
        if self.odd == self.size:
            return "not finite"
        if self.data["low"] == self.data["high"] == 0:
            return "zero"
        return "constant" if self.size > 1 and self.data["low"] == self.data["high"] else None

    @cached_property
    def values(self) -> array.array[float]:
        """Its elements, or the sums of its sketch."""
        values = array.array("d")
        values.frombytes(base64.b64decode(self.data.get("whole") or self.data.get("sums") or ""))
        factor = self.data.get("factor", 1.0)
        return values if factor == 1.0 else array.array("d", (value * factor for value in values))

    def same_bits(self, other: Tensor) -> bool:
        """Whether both are the same bytes."""
        return self.data.get("crc") == other.data.get("crc") and self.dtype == other.dtype

    def distance(self, other: Tensor) -> float:
        """Euclidean distance, exact or estimated from the sketches; infinite where there is none."""
        if self.shape != other.shape or self.is_float != other.is_float or self.odd != other.odd:
            return math.inf
        if self.same_bits(other):
            return 0.0
        if not self.is_float:
            return math.inf
        found = math.dist(_finite(self.values), _finite(other.values))
        return found if math.isfinite(found) else math.inf


def _finite(values: Iterable[float]) -> list[float]:
    return [value if math.isfinite(value) else 0.0 for value in values]


@dataclass
class Call:
    """One call of a module."""

    name: str
    mode: str
    number: int
    step: int
    depth: int
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, str, str, int]:
        """What makes the same call of another run."""
        return self.step, self.name, self.mode, self.number


@dataclass(frozen=True)
class Gradient:
    """The gradient of a module's output."""

    name: str
    number: int
    path: str
    step: int
    occurrence: int
    value: Tensor

    @property
    def key(self) -> tuple[int, str, int, str, int]:
        """What makes the same gradient of another run."""
        return self.step, self.name, self.number, self.path, self.occurrence


@dataclass(frozen=True)
class Step:
    """One step of one optimizer."""

    number: int
    optimizer: int
    count: int
    type: str
    groups: list[dict[str, Any]]
    norm: float
    unset: list[str]
    gradients: dict[str, Tensor]
    devices: list[str]


@dataclass(frozen=True)
class Snapshot:
    """Parameters and all else that lasts, before the first step (`count` 0) or after one."""

    optimizer: int
    count: int
    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    memory: dict[str, Tensor]
    ties: list[list[str]]
    outside: list[str]
    frozen: list[str]


@dataclass(frozen=True)
class Loss:
    """A scalar that gradients were asked of; `scale` is what a gradient scaler multiplied it by."""

    step: int
    number: int
    value: float | None
    dtype: str
    device: str
    scale: float = 1.0


@dataclass
class Recording:
    """What one process computed.

    Attributes:
        modules: For each module its class and the user's places: `type`, `defined`, `called`.
        calls: Module calls in the order in which they ended, so that an inner one comes first.
        counts: Calls of each module by step and mode, those beyond the recorded ones included.
        end: The last record, absent where the process died.
    """

    header: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    gradients: list[Gradient] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    counts: dict[tuple[int, str, str], int] = field(default_factory=dict)
    draws: list[dict[str, Any]] = field(default_factory=list)
    loaders: list[dict[str, Any]] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None

    @property
    def num_steps(self) -> int:
        """Steps of the busiest optimizer."""
        return max((step.count for step in self.steps), default=0)


def _number(value: Any) -> float:
    return float(value) if value is not None else math.nan


class _Reader:
    """Builds a recording from lines."""

    def __init__(self) -> None:
        self.made = Recording()
        self._tensors: dict[int, Tensor] = {}
        self._open: dict[tuple[Any, ...], Call] = {}
        self._seen: dict[tuple[Any, ...], int] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Takes in one record."""
        kind = record.pop("kind")
        action = getattr(self, f"_{kind}", None)
        if action is not None:
            action(record)

    def _tensor(self, data: dict[str, Any]) -> Tensor:
        if "is" in data:
            return self._tensors[data["is"]]
        found = Tensor(data)
        if "number" in data:
            self._tensors[data["number"]] = found
        return found

    def _all(self, values: dict[str, Any]) -> dict[str, Tensor]:
        return {name: self._tensor(value) for name, value in values.items()}

    def _header(self, record: dict[str, Any]) -> None:
        self.made.header = record

    def _module(self, record: dict[str, Any]) -> None:
        self.made.modules[record.pop("name")] = record

    def _enter(self, record: dict[str, Any]) -> None:
        inputs = self._all(record["inputs"])
        call = Call(record["name"], record["mode"], record["call"], record["step"], record["depth"], inputs)
        self._open[call.key] = call

    def _leave(self, record: dict[str, Any]) -> None:
        call = self._open.pop((record["step"], record["name"], record["mode"], record["call"]), None)
        outputs = self._all(record["outputs"])
        if call is not None:
            call.outputs = outputs
            self.made.calls.append(call)

    def _gradient(self, record: dict[str, Any]) -> None:
        place = record["step"], record["name"], record["call"], record["path"]
        self._seen[place] = self._seen.get(place, 0) + 1
        value = self._tensor(record["value"])
        step, name, number, path = place
        self.made.gradients.append(Gradient(name, number, path, step, self._seen[place], value))

    def _loss(self, record: dict[str, Any]) -> None:
        value = None if record["value"] is None else _number(record["value"])
        scale = _number(record.get("scale", 1.0))
        self.made.losses.append(Loss(record["step"], record["number"], value, record["dtype"], record["device"], scale))

    def _step(self, record: dict[str, Any]) -> None:
        self.made.steps.append(
            Step(
                record["step"], record["optimizer"], record["count"], record["type"], record["groups"],
                _number(record["norm"]), record["unset"], self._all(record["gradients"]), record["devices"],
            )
        )  # fmt: skip

    def _state(self, record: dict[str, Any]) -> None:
        self.made.snapshots.append(
            Snapshot(
                record["optimizer"], record["count"], self._all(record["parameters"]), self._all(record["buffers"]),
                self._all(record["memory"]), record["ties"], record["outside"], record["frozen"],
            )
        )  # fmt: skip

    _start = _state

    def _calls(self, record: dict[str, Any]) -> None:
        for name, mode, count in record["counts"]:
            self.made.counts[record["step"], name, mode] = count

    def _draw(self, record: dict[str, Any]) -> None:
        self.made.draws.append(record)

    def _loader(self, record: dict[str, Any]) -> None:
        self.made.loaders.append(record)

    def _batch(self, record: dict[str, Any]) -> None:
        self.made.batches.append(record)

    def _note(self, record: dict[str, Any]) -> None:
        self.made.notes.append(record)

    def _end(self, record: dict[str, Any]) -> None:
        self.made.end = record


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            # The last line of a process that was killed may be cut.
            if line.endswith(b"\n"):
                yield json.loads(line)


def read(path: Path) -> Recording:
    """The recording in one file."""
    reader = _Reader()
    for record in _records(path):
        reader.add(record)
    return reader.made


def read_folder(folder: Path) -> dict[str, Recording]:
    """The recordings of all processes of a run by the name of their file, those that computed nothing left out."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.jsonl"))}
    return {name: one for name, one in found.items() if one.calls or one.steps or one.losses}
