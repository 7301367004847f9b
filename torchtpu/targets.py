"""TPU generations and slices: what a chip can do at most, each number with its public source."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

GIB = 2**30

SOURCES = {
    "v4": "https://docs.cloud.google.com/tpu/docs/v4",
    "v5e": "https://docs.cloud.google.com/tpu/docs/v5e",
    "v5p": "https://docs.cloud.google.com/tpu/docs/v5p",
    "v6e": "https://docs.cloud.google.com/tpu/docs/v6e",
    "tpu7x": "https://docs.cloud.google.com/tpu/docs/tpu7x",
    "jax": "jax 0.10.2, jax/_src/pallas/mosaic/tpu_info.py",
    "book": "https://jax-ml.github.io/scaling-book/tpus/",
    "peak": "derived: bfloat16 peak / (MXU cells x operations a cell and cycle)",
    "assumed": "derived as above, with two multiply-adds a cell and cycle, which is assumed: no clock is public",
}


@dataclass(frozen=True)
class Figure:
    """A number and where it comes from.

    Attributes:
        value: In the unit that the field's name says.
        source: Key of ``SOURCES``.
    """

    value: float
    source: str


@dataclass(frozen=True)
class Generation:
    """What one chip has. A device is what a program sees: a chip, or one of its cores where they are two.

    Attributes:
        name: As in slice names.
        peak: Operations a second and chip, by type.
        hbm_bytes: Memory of a chip.
        hbm_bandwidth: Bytes a second and chip.
        ici_bandwidth: Bytes a second and chip over all its links to other chips, both ways together.
        clock: Cycles a second of its cores.
        cores: TensorCores of a chip.
        devices: Devices a chip shows.
        mxu: Side of a matrix unit.
        vmem_bytes: Vector memory of a core.
        dimensions: Of the grid of chips.
        largest: Chips of the largest slice.
        counts_cores: Slice names count TensorCores, not chips.
    """

    name: str
    peak: dict[str, Figure]
    hbm_bytes: Figure
    hbm_bandwidth: Figure
    ici_bandwidth: Figure
    clock: Figure
    cores: int
    devices: int
    mxu: int
    vmem_bytes: Figure
    dimensions: int
    largest: int
    counts_cores: bool

    def device_peak(self, dtype: str = "bfloat16") -> float:
        """Operations a second of one device; a type the matrix units lack counts as bfloat16 in passes."""
        passes = {"float32": 6.0, "float64": math.inf}.get(dtype, 1.0)
        figure = self.peak.get(dtype, self.peak["bfloat16"])
        return figure.value / self.devices / (1.0 if dtype in self.peak else passes)

    @property
    def device_hbm_bytes(self) -> float:
        """Memory of one device."""
        return self.hbm_bytes.value / self.devices

    @property
    def device_bandwidth(self) -> float:
        """Bytes a second between memory and cores of one device."""
        return self.hbm_bandwidth.value / self.devices


def _generation(
    name: str, bf16: float, int8: float | None, hbm: float, bandwidth: float, ici: tuple[float, str],
    clock: tuple[float, str], vmem: float, cores: int, devices: int, mxu: int, largest: int, fp8: float | None = None,
) -> Generation:  # fmt: skip
    peak = {"bfloat16": Figure(bf16 * 1e12, name)}
    if int8 is not None:
        peak["int8"] = Figure(int8 * 1e12, name)
    if fp8 is not None:
        peak["float8"] = Figure(fp8 * 1e12, name)
    three = name in ("v4", "v5p", "tpu7x")
    return Generation(
        name, peak, Figure(hbm, name), Figure(bandwidth * 1e9, name), Figure(ici[0] * 1e9, ici[1]),
        Figure(clock[0] * 1e9, clock[1]), cores, devices, mxu, Figure(vmem * 2**20, "jax"), 3 if three else 2,
        largest, three,
    )  # fmt: skip


GENERATIONS = {
    generation.name: generation
    for generation in (
        _generation("v4", 275, 275, 32 * GIB, 1200, (540, "book"), (1.05, "peak"), 16, 2, 1, 128, 4096),
        _generation("v5e", 197, 393, 16 * GIB, 819, (400, "v5e"), (1.5, "book"), 128, 1, 1, 128, 256),
        _generation("v5p", 459, 918, 95 * GIB, 2765, (1200, "tpu7x"), (1.75, "peak"), 64, 2, 1, 128, 8960),
        _generation("v6e", 918, 1836, 32 * GIB, 1638, (800, "v6e"), (1.75, "assumed"), 128, 1, 1, 256, 256),
        _generation("tpu7x", 2307, None, 192 * GIB, 7380, (1200, "tpu7x"), (2.2, "assumed"), 64, 2, 2, 256, 9216, 4614),
    )
}

_ALIASES = {"v7x": "tpu7x", "tpu7": "tpu7x", "v5litepod": "v5e", "ironwood": "tpu7x", "trillium": "v6e"}
_FLAT = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
_NAME = re.compile(r"(?P<generation>[a-z0-9]+?)(?:-(?P<count>\d+)|:(?P<grid>\d+(?:x\d+){1,2}))?", re.IGNORECASE)


class UnknownTarget(ValueError):
    """No TPU slice has that name; says which there are."""


@dataclass(frozen=True)
class Target:
    """A slice of a generation.

    Attributes:
        name: As given, such as ``v6e-8``.
        generation: What its chips are.
        topology: The grid of its chips, such as ``2x4``.
        chips: How many it has.
    """

    name: str
    generation: Generation
    topology: str
    chips: int

    @property
    def compiler_name(self) -> str:
        """How the compiler calls it."""
        return f"{self.generation.name}:{self.topology}"

    @property
    def devices(self) -> int:
        """How many devices a program sees."""
        return self.chips * self.generation.devices


def _cube(chips: int) -> str | None:
    """A grid in three dimensions as even as it can be; the first grows last, as in Google's tables."""
    if chips & (chips - 1):
        return None
    sides = [1, 1, 1]
    for bit in range(chips.bit_length() - 1):
        sides[bit % 3] *= 2
    return "x".join(map(str, sorted(sides, reverse=chips <= 4)))


def find(name: str) -> Target:
    """Returns the slice of a name such as ``v6e-8``, ``v5p-8`` (TensorCores), ``v6e:2x4`` or ``v5e`` (one chip).

    Raises:
        UnknownTarget: There is none.
    """
    match = _NAME.fullmatch(name.strip())
    generation = match and GENERATIONS.get(_ALIASES.get(match["generation"].lower(), match["generation"].lower()))
    if match is None or not generation:
        raise UnknownTarget(f"'{name}' is no TPU target; generations: {', '.join(GENERATIONS)}; slices such as v6e-8")
    if match["grid"]:
        topology = match["grid"]
        return Target(name, generation, topology, math.prod(map(int, topology.split("x"))))
    count = int(match["count"] or generation.cores if generation.counts_cores else match["count"] or 1)
    chips, rest = divmod(count, generation.cores if generation.counts_cores else 1)
    grid = (_cube(chips) if generation.dimensions == 3 else _FLAT.get(chips)) if chips and not rest else None
    if grid is None or chips > generation.largest:
        what = "TensorCores, a power of two of chips" if generation.counts_cores else f"chips: {_listed()}"
        raise UnknownTarget(f"there is no slice '{name}'; the number after the dash counts {what}")
    return Target(name, generation, grid, chips)


def _listed() -> str:
    return ", ".join(map(str, _FLAT))


def describe(target: Target) -> dict[str, Any]:
    """Returns a target's figures as JSON, with the source of each."""
    chip = target.generation
    figures = {
        name: {"value": getattr(chip, name).value, "source": SOURCES[getattr(chip, name).source]}
        for name in ("hbm_bytes", "hbm_bandwidth", "ici_bandwidth", "clock", "vmem_bytes")
    }
    peaks = {kind: {"value": figure.value, "source": SOURCES[figure.source]} for kind, figure in chip.peak.items()}
    return {
        "name": target.name,
        "generation": chip.name,
        "topology": target.topology,
        "chips": target.chips,
        "devices": target.devices,
        "cores_per_chip": chip.cores,
        "devices_per_chip": chip.devices,
        "mxu": chip.mxu,
        "peak": peaks,
        **figures,
    }
