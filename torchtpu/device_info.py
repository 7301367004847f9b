"""What a device is: hardware, a simulated TPU or the CPU, as choosing it and bringing it up hand it on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal

Kind = Literal["hardware", "simulated", "cpu"]
Numerics = Literal["float32", "tpu"]

GENERATION_VARIABLE = "TORCHTPU_SIMULATED_GENERATION"
DEFAULT_GENERATION = "v5e"


@dataclass(frozen=True)
class DeviceInfo:
    """The device a workload runs on.

    Attributes:
        kind: ``hardware``, ``simulated`` or ``cpu``.
        name: For people, such as ``TPU v6e`` or ``simulated TPU v5e (XLA CPU 0.11.2)``.
        why: Why this one was chosen.
        plugin: Path of the CPU PJRT plugin of a simulated device.
        plugin_sha256: Its hash.
        versions: Versions of the packages involved.
    """

    kind: Kind
    name: str
    why: str
    plugin: str | None = None
    plugin_sha256: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Returns the fields as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> DeviceInfo:
        """Reads what ``to_json`` wrote."""
        return cls(**json.loads(text))
