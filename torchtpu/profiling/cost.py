"""Estimates the time of one instruction on a chip. Every number of the model is an assumption stated here.

Three times are given. The lower one is the roofline: all operations at the peak, all bytes at full
bandwidth. The upper one takes the compiler's window model as it is, which is pessimistic. The estimate
scales its cycles and takes the longer of core and memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchtpu.hlo.flops import instruction_flops, vector_operations
from torchtpu.hlo.parse import Instruction, Module
from torchtpu.hlo.shapes import HBM, Shape
from torchtpu.targets import Generation

FREE = frozenset(
    "parameter constant get-tuple-element tuple bitcast after-all partition-id replica-id opt-barrier".split()
)
_ASYNC = ("-start", "-done", "-update")
_INDEXED = ("gather", "dynamic-slice", "slice")


@dataclass(frozen=True)
class Model:
    """Numbers of the time model.

    Attributes:
        memory_efficiency: Share of the memory's bandwidth that is reached.
        matmul_efficiency: Share of the peak that no product exceeds.
        matmul_scale: True cycles of a fusion with a matrix product by the window model's.
        loop_scale: The same for fusions without one.
        kernel_efficiency: Share of the peak a hand-written kernel reaches on full matrix units.
        plain_efficiency: Share of the peak of a product the window model says nothing of.
        vector_rate: Element-wise operations a cycle where it says nothing.
        worst_memory_efficiency: For the upper time.
        worst_kernel_efficiency: For the upper time.
        overhead: Seconds an instruction takes at least.
    """

    memory_efficiency: float = 0.85
    matmul_efficiency: float = 0.91
    matmul_scale: float = 0.78
    loop_scale: float = 0.45
    kernel_efficiency: float = 0.6
    plain_efficiency: float = 0.55
    vector_rate: float = 1450.0
    worst_memory_efficiency: float = 0.6
    worst_kernel_efficiency: float = 0.25
    overhead: float = 1e-6


MODEL = Model()


@dataclass(frozen=True)
class Cost:
    """What an instruction costs, once.

    Attributes:
        flops: Operations of matrix products.
        bytes: Bytes between memory and core, whole tiles.
        padding: Bytes of them that are only padding.
        cycles: By the window model; None where it has none.
        seconds: Estimate.
        low: Roofline.
        high: Window model as it is.
        bound: ``matrix``, ``vector``, ``memory``, ``kernel``, ``overhead`` or ``asynchronous``.
        source: What the time rests on: ``cycles`` of the compiler or ``model`` of ours.
    """

    flops: float
    bytes: float
    padding: float
    cycles: int | None
    seconds: float
    low: float
    high: float
    bound: str
    source: str


def _traffic(shapes: list[Shape]) -> tuple[float, float]:
    inside = [shape for shape in shapes if shape.space == HBM]
    padded = sum(shape.padded_bytes for shape in inside)
    return padded, padded - sum(shape.bytes for shape in inside)


def _read(one: Instruction, module: Module) -> list[Shape]:
    """Shapes an instruction reads: of an operand it only picks rows of, the rows."""
    found: list[Shape] = []
    for position, name in enumerate(one.operands):
        operand = module.by_name.get(name)
        if operand is None:
            continue
        picked = _picked(one, position, module) if one.opcode == "fusion" else None
        if one.opcode in _INDEXED and position == 0:
            picked = list(one.shapes)
        found += _in_space(picked, operand.shapes) if picked is not None else operand.shapes
    return found


def _in_space(picked: list[Shape], source: tuple[Shape, ...]) -> list[Shape]:
    space = source[0].space if source else HBM
    return [Shape(shape.dtype, shape.dims, shape.order, shape.tile, space) for shape in picked]


def _picked(one: Instruction, position: int, module: Module) -> list[Shape] | None:
    lines = module.computations.get(one.called[0], []) if one.called else []
    inner = next((line for line in lines if line.opcode == "parameter" and f"parameter({position})" in line.text), None)
    if inner is None:
        return None
    users = [line for line in lines if inner.name in line.operands]
    if users and all(line.opcode in _INDEXED and line.operands[0] == inner.name for line in users):
        return [shape for line in users for shape in line.shapes]
    return None


def is_asynchronous(one: Instruction) -> bool:
    """Says whether an instruction only begins or awaits a copy that runs beside others."""
    return one.opcode.endswith(_ASYNC)


def cost(
    one: Instruction, module: Module, chip: Generation, *, kernel_flops: float = 0.0, fill: float = 1.0,
    model: Model = MODEL,
) -> Cost:  # fmt: skip
    """Returns the cost of an instruction.

    Args:
        one: The instruction.
        module: Its module.
        chip: What it runs on; one device of it.
        kernel_flops: Operations of a hand-written kernel, which the program does not show.
        fill: Share of the matrix units that kernel can use.
        model: Numbers of the time model.
    """
    peak, bandwidth, clock = chip.device_peak(), chip.device_bandwidth, chip.clock.value
    if is_asynchronous(one):
        moved, padding = _traffic(list(one.shapes[:1])) if one.opcode.endswith("-start") else (0.0, 0.0)
        moved = max(moved, _source_bytes(one, module)) if one.opcode.endswith("-start") else 0.0
        return Cost(0.0, moved, padding, None, 0.0, 0.0, 0.0, "asynchronous", "model")
    flops = instruction_flops(one, module) + kernel_flops
    moved, padding = _traffic([*_read(one, module), *one.shapes])
    memory = moved / bandwidth
    core, worst, source, bound = _core_time(one, flops, peak * fill, clock, kernel_flops > 0, model)
    if source == "model" and not flops:
        vector = vector_operations(one, module) / model.vector_rate / clock
        core, worst, bound = max(core, vector), max(worst, vector / model.loop_scale), _slower(core, vector, bound)
    slowest = max(memory / model.memory_efficiency, core, model.overhead)
    if slowest == model.overhead:
        bound = "overhead"
    elif slowest > core:
        bound, source = "memory", "model"
    high = max(memory / model.worst_memory_efficiency, worst, slowest)
    return Cost(flops, moved, padding, one.cycles, slowest, max(flops / peak, memory), high, bound, source)


def _slower(core: float, vector: float, bound: str) -> str:
    return "vector" if vector > core else bound


def _source_bytes(one: Instruction, module: Module) -> float:
    operand = module.by_name.get(one.operands[0]) if one.operands else None
    if operand is None or one.opcode != "copy-start":
        return 0.0
    return _traffic(list(operand.shapes))[0]


def _core_time(
    one: Instruction, flops: float, peak: float, clock: float, kernel: bool, model: Model
) -> tuple[float, float, str, str]:
    if kernel:
        return (
            flops / peak / model.kernel_efficiency, flops / peak / model.worst_kernel_efficiency, "model", "kernel",
        )  # fmt: skip
    if one.cycles:
        seconds = one.cycles / clock
        if flops:
            fastest = flops / peak / model.matmul_efficiency
            return max(seconds * model.matmul_scale, fastest), max(seconds, fastest), "cycles", "matrix"
        return seconds * model.loop_scale, seconds, "cycles", "vector"
    if flops:
        return flops / peak / model.plain_efficiency, flops / peak / model.worst_kernel_efficiency, "model", "matrix"
    return 0.0, 0.0, "model", "vector"
