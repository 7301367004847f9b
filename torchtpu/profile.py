"""Turns a recorded step and its compiled program into a profile: time, memory and utilisation by source line."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from torchtpu.compiler import OK, OUT_OF_MEMORY, Compiled, versions
from torchtpu.hlo.parse import Instruction, Module, parse
from torchtpu.lowering.flops import Shapes, operator_flops
from torchtpu.lowering.places import is_users, library_place, place_of, stack_of
from torchtpu.profiling.attribution import Attribution
from torchtpu.profiling.cost import FREE, MODEL, Cost, Model, cost, is_asynchronous
from torchtpu.profiling.memory import Memory
from torchtpu.targets import Generation, Target, describe

FORMAT = 1
_KERNEL = "tpu_custom_call"
_LOOPS = ("while",)
_CALLS = ("call", "conditional")
_MOST_BUFFERS = 25
_MOST_INNER = 20
_TIMELINE_POINTS = 400
_WIDE = ("float32", "float64")
_NARROW = ("bfloat16", "float16")

Row = dict[str, Any]


class Profiler:
    """Makes the profile of one compiled step.

    Args:
        step: The recording.
        compiled: What the compiler made of it.
        target: What it was compiled for.
        model: Numbers of the time model.
    """

    def __init__(self, step: dict[str, Any], compiled: Compiled, target: Target, model: Model = MODEL) -> None:
        self.step, self.compiled, self.target, self.model = step, compiled, target, model
        self.chip: Generation = target.generation
        self.module: Module = parse(compiled.hlo)
        self.attribution = Attribution(self.module)
        self.shapes = Shapes(step)
        self.flops = [operator_flops(entry, self.shapes) for entry in step["operators"]]
        self.kernels = self._kernels()

    def _walk(self, name: str, times: float, depth: int = 0) -> Iterator[tuple[Instruction, float]]:
        """Instructions that run, in order, and how often; what is inside a fusion runs as one."""
        for one in self.module.computations.get(name, []):
            if one.opcode in _LOOPS and one.body and depth < 8:
                yield from self._walk(one.body, times * (one.trips or 1), depth + 1)
            elif one.opcode in _CALLS and depth < 8:
                for inner in one.called[:1]:
                    yield from self._walk(inner, times, depth + 1)
            elif one.opcode not in FREE:
                yield one, times

    def _kernels(self) -> dict[str, float]:
        """Operations of each hand-written kernel: those of its operator, shared among the operator's kernels."""
        owners = {one.name: self.attribution.operator(one) for one, _ in self._calls()}
        number = Counter(owner for owner in owners.values() if owner is not None)
        return {name: self.flops[o] / number[o] for name, o in owners.items() if o is not None}

    def _calls(self) -> Iterator[tuple[Instruction, float]]:
        return ((one, times) for one, times in self._walk(self.module.entry, 1.0) if one.target == _KERNEL)

    def _fill(self, operator: int | None) -> float:
        """Share of the matrix units that attention can use with its head dimension."""
        if operator is None or "scaled_dot_product" not in self.step["operators"][operator]["op"]:
            return 1.0
        entry = self.step["operators"][operator]
        query = self.shapes.argument(entry, 1 if "_backward" in entry["op"] else 0)
        return min(1.0, query[-1] / self.chip.mxu) if query else 1.0

    def rows(self) -> list[Row]:
        """One row for each instruction that runs."""
        return [self._row(one, times) for one, times in self._walk(self.module.entry, 1.0)]

    def _exposed(self, rows: list[Row]) -> list[Row]:
        """Gives copies that run beside others the time by which the memory is busier than the core."""
        needed = sum(row["bytes"] for row in rows) / self.chip.device_bandwidth / self.model.memory_efficiency
        missing = needed - sum(row["seconds"] for row in rows)
        beside = [row for row in rows if row["asynchronous"] and row["bytes"]]
        total = sum(row["bytes"] for row in beside)
        if missing > 0 and total:
            for row in beside:
                row["seconds"] += missing * row["bytes"] / total
                row["high"] = max(row["high"], row["seconds"])
        return rows

    def _row(self, one: Instruction, times: float) -> Row:
        operator = self.attribution.operator(one)
        kernel = self.kernels.get(one.name, 0.0)
        fill = self._fill(operator) if kernel else 1.0
        found: Cost = cost(one, self.module, self.chip, kernel_flops=kernel, fill=fill, model=self.model)
        numbers = asdict(found)
        for name in ("flops", "bytes", "padding", "seconds", "low", "high"):
            numbers[name] *= times
        return {
            "name": one.name,
            "opcode": one.opcode,
            "layout_copy": one.opcode == "copy" or (one.opcode == "fusion" and one.name.startswith("copy")),
            "asynchronous": is_asynchronous(one),
            "times": times,
            **numbers,
            "operator": operator,
            "inferred": self.attribution.said(one) is None,
            **self.source(operator),
        }

    def source(self, operator: int | None) -> Row:
        """Where an operator comes from: its name, phase, file, line and the PyTorch function in between."""
        if operator is None or operator >= len(self.step["operators"]):
            return {
                "op": None,
                "phase": None,
                "file": None,
                "line": None,
                "function": None,
                "through": None,
                "library": None,
            }
        entry = self.step["operators"][operator]
        file, line, function = place_of(self.step, entry)
        stack = stack_of(self.step, entry)
        inner = next(
            (place for place in stack if not is_users(place[0]) and "/torch/nn/modules/module" not in place[0]), None
        )
        through = inner[2] if inner is not None and stack.index(inner) < _position(stack, file, line) else None
        return {
            "op": entry["op"],
            "phase": entry["phase"],
            "file": file if is_users(file) else None,
            "line": line if is_users(file) else None,
            "function": function,
            "through": through,
            "library": library_place(stack),
        }

    def profile(self) -> dict[str, Any]:
        """Returns the whole profile, as JSON."""
        fits = self.compiled.outcome == OK
        rows = self._exposed(self.rows()) if fits else []
        return {
            "format": FORMAT,
            "target": describe(self.target),
            "outcome": self.compiled.outcome,
            "message": self.compiled.message,
            "fits": fits if self.compiled.outcome in (OK, OUT_OF_MEMORY) else None,
            "scheduled_only": self.compiled.scheduled_only,
            "compile_seconds": round(self.compiled.seconds, 2),
            "host_memory": self.compiled.host_memory,
            "memory": self._memory(),
            "time": self._time(rows) if fits else None,
            "attribution": _attributed(rows) if fits else None,
            "lines": by_line(rows),
            "operators": sorted(rows, key=lambda row: -row["seconds"]),
            "order": [row["name"] for row in rows],
            "waste": self._waste(rows) if fits else None,
            "step": self._about_step(),
            "model": asdict(self.model),
            "versions": versions(),
        }

    def _time(self, rows: list[Row]) -> Row:
        estimate, low, high = (sum(row[name] for row in rows) for name in ("seconds", "low", "high"))
        peak, bandwidth = self.chip.device_peak(), self.chip.device_bandwidth
        moved = sum(row["bytes"] for row in rows)
        compiled_flops = sum(row["flops"] for row in rows)
        wanted = sum(self.flops)
        low = max(low, moved / bandwidth)
        bound: Counter[str] = Counter()
        for row in rows:
            bound[row["bound"]] += row["seconds"]
        from_cycles = sum(row["seconds"] for row in rows if row["source"] == "cycles")
        return {
            "seconds": estimate,
            "low": low,
            "high": max(high, estimate),
            "model_flops": wanted,
            "compiled_flops": compiled_flops,
            "bytes": moved,
            "mfu": wanted / estimate / peak if estimate else None,
            "mfu_low": wanted / max(high, estimate) / peak if estimate else None,
            "mfu_high": min(1.0, wanted / low / peak) if low else None,
            "peak_flops": peak,
            "bandwidth": bandwidth,
            "bound": dict(bound),
            "from_cycles": from_cycles / estimate if estimate else 0.0,
        }

    def _memory(self) -> Row:
        memory, kinds = Memory(self.module), self.compiled.memory
        limit = self.chip.device_hbm_bytes
        line = memory.timeline()
        followed = max(line, default=0.0)
        peak = kinds["argument"] + kinds["output"] - kinds["alias"] + kinds["temp"] + kinds["code"] if kinds else None
        every = max(1, len(line) // _TIMELINE_POINTS)
        return {
            "limit": limit,
            "peak": peak,
            **{f"{kind}_bytes": value for kind, value in kinds.items()},
            "followed_peak": followed,
            "timeline": [max(line[at : at + every]) for at in range(0, len(line), every)],
            "largest": self._largest(memory),
            "arguments_by_kind": _arguments(self.step),
        }

    def _largest(self, memory: Memory) -> list[Row]:
        found = []
        for held in memory.largest(_MOST_BUFFERS):
            one = self.module.by_name[held.instruction]
            shape = one.shapes[held.index]
            found.append(
                {
                    "bytes": held.bytes,
                    "logical_bytes": shape.bytes,
                    "shape": f"{shape.dtype}[{','.join(map(str, shape.dims))}]",
                    "instruction": one.name,
                    **self.source(self.attribution.operator(one)),
                }
            )
        return found

    def _waste(self, rows: list[Row]) -> Row:
        copies = [row for row in rows if row["layout_copy"] and not row["asynchronous"]]
        return {
            "padding_bytes": sum(row["padding"] for row in rows),
            "layout_copies": len(copies),
            "layout_copy_seconds": sum(row["seconds"] for row in copies),
            "upcasts": self._upcasts(),
            "host_reads": [self._read_place(read) for read in self.step["reads"]],
        }

    def _upcasts(self) -> list[Row]:
        """Conversions of narrow floating-point numbers to wide ones, by line, largest first."""
        found: dict[tuple[Any, Any], float] = defaultdict(float)
        for index, entry in enumerate(self.step["operators"]):
            if entry["op"] != "aten._to_copy.default" or not entry["shapes"]:
                continue
            if self.shapes.dtype(entry) in _NARROW and entry["shapes"][0]["dtype"] in _WIDE:
                place = self.source(index)
                elements = 1
                for size in entry["shapes"][0]["shape"]:
                    elements *= size
                found[place["file"], place["line"]] += 4.0 * elements
        order = sorted(found.items(), key=lambda item: -item[1])
        return [{"file": file, "line": line, "bytes": size} for (file, line), size in order[:20]]

    def _read_place(self, read: Row) -> Row:
        file, line, function = place_of(self.step, read)
        return {"op": read["op"], "file": file, "line": line, "function": function}

    def _about_step(self) -> Row:
        phases = Counter(entry["phase"] for entry in self.step["operators"])
        return {
            "operators": len(self.step["operators"]),
            "phases": dict(phases),
            "inputs": len(self.step["inputs"]),
            "from_host": [entry["shape"] for entry in self.step["inputs"] if entry.get("from_host")],
            "notes": self.step.get("notes", []),
        }


def _position(stack: list[tuple[str, int, str]], file: str, line: int) -> int:
    return next((at for at, place in enumerate(stack) if place[:2] == (file, line)), 0)


def _attributed(rows: list[Row]) -> Row:
    total = sum(row["seconds"] for row in rows) or 1.0
    return {
        "to_user_lines": sum(row["seconds"] for row in rows if row["file"]) / total,
        "to_operators": sum(row["seconds"] for row in rows if row["op"]) / total,
        "inferred": sum(row["seconds"] for row in rows if row["op"] and row["inferred"]) / total,
    }


def by_line(rows: list[Row]) -> list[Row]:
    """Sums over the rows of each source line, the most expensive first."""
    sums: dict[tuple[Any, Any], Row] = {}
    for row in rows:
        one = sums.setdefault(
            (row["file"], row["line"]),
            {"file": row["file"], "line": row["line"], "function": row["function"], "seconds": 0.0, "flops": 0.0,
             "bytes": 0.0, "phases": defaultdict(float), "ops": Counter(), "bound": Counter(), "inner": Counter()},
        )  # fmt: skip
        for name in ("seconds", "flops", "bytes"):
            one[name] += row[name]
        one["phases"][row["phase"]] += row["seconds"]
        one["ops"][row["op"]] += row["seconds"]
        one["bound"][row["bound"]] += row["seconds"]
        one["inner"][row["library"] or ""] += row["seconds"]
    for one in sums.values():
        one["phases"] = dict(one["phases"])
        one["ops"] = [name for name, _ in one["ops"].most_common(3) if name]
        one["bound"] = one["bound"].most_common(1)[0][0]
        inner = one["inner"].most_common(_MOST_INNER)
        one["inner"] = [{"place": name, "seconds": seconds} for name, seconds in inner if name]
    return sorted(sums.values(), key=lambda one: -one["seconds"])


def _arguments(step: dict[str, Any]) -> dict[str, float]:
    """Bytes of the step's inputs: parameters, optimizer state, batch."""
    widths = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2}
    found: Counter[str] = Counter()
    for entry in step["inputs"]:
        size = widths.get(entry["dtype"], 1)
        for side in entry["shape"]:
            size *= side
        name = entry["name"]
        kind = "batch" if entry["from_host"] else "optimizer state" if " of " in name else "parameters and buffers"
        found[kind] += size
    return dict(found)
