"""Runs a program on the device and tells what ran, what made the host wait, and what was compiled and why."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools import run as runner
from torchtpu import trace as traces

SCHEMA_VERSION = 1
# Steps in which a program may still compile without its being a recompilation.
WARM_UP = 2


class Operator(BaseModel):
    """Calls of one operator with the same shapes and types from one line."""

    name: str
    shapes: list[list[int]]
    dtypes: list[str]
    device: str = Field(description="tpu where an argument or a result is there")
    place: str = Field(description="the user's file:line; in the backward pass that of backward()")
    phase: str = Field(description="program, backward or optimizer")
    count: int
    seconds: float = Field(description="time of the host, with the device's work and compilation")
    first_step: int
    last_step: int


class Sync(BaseModel):
    """A wait of the host for the device."""

    kind: str
    place: str
    phase: str
    count: int
    steps: list[int] = Field(description="the first hundred steps in which it happened")


class Dynamic(BaseModel):
    """An operator whose shapes are not fixed."""

    name: str
    place: str
    why: str
    shapes: list[list[int]] = Field(description="of results that depend on data; else of the first argument")


class Compilation(BaseModel):
    """Programs that an operator made the backend compile."""

    operator: str
    step: int
    place: str
    phase: str
    programs: int
    cause: str
    seconds: float


class StepCost(BaseModel):
    """One step: from the end of the optimizer step before it to the end of its own."""

    step: int
    seconds: float
    compilations: int


class GraphBreak(BaseModel):
    """A place at which torch.compile ends a graph."""

    place: str
    reason: str
    count: int


class Recompilation(BaseModel):
    """A function that torch.compile compiled again."""

    place: str
    step: int
    causes: list[str] = Field(description="guards that failed")


class Fallback(BaseModel):
    """An operator that ran on the CPU for want of one on the device."""

    message: str
    place: str


class ProcessTrace(BaseModel):
    """What one process did."""

    pid: int
    rank: int | None = None
    device: str
    seconds: float
    steps: int
    operators: list[Operator] = []
    syncs: list[Sync] = []
    dynamic: list[Dynamic] = []
    compilations: list[Compilation] = []
    compilations_elsewhere: int = Field(default=0, description="those inside torch.compile or of deferred programs")
    per_step: list[StepCost] = []
    graph_breaks: list[GraphBreak] = []
    recompilations: list[Recompilation] = []
    events_lost: int = Field(default=0, description="runs of operators left out of the Chrome trace")

    @property
    def late(self) -> list[Compilation]:
        """Compilations after the first steps, within which everything should have been compiled."""
        return [one for one in self.compilations if WARM_UP < one.step <= self.steps]


class TraceOutput(BaseModel):
    """How a program ended, and what each of its processes did, the busiest first."""

    schema_version: int = SCHEMA_VERSION
    outcome: str
    explanation: str
    device: dict[str, Any] | None = None
    fallbacks: list[Fallback] = []
    processes: list[ProcessTrace] = []
    chrome: str | None = Field(default=None, description="the file of the Chrome trace")

    @property
    def ended_well(self) -> bool:
        """Whether the program came to its end or to its last step."""
        return self.outcome in ("completed", "stopped-at-steps")


def trace(
    request: runner.RunRequest,
    chrome: Path | None = None,
    on_output: Callable[[str], None] | None = None,
    run: Callable[..., runner.RunOutput] = runner.run,
) -> TraceOutput:
    """Run a program as `tools.run.run` does, and watch its operators.

    Launches block while it is traced, so that a compilation belongs to the operator that needs it; the numbers a
    program computes are the same, its times are not those of an untraced run.

    Args:
        request: What to run.
        chrome: File for a trace that Chrome and Perfetto open.
        on_output: Called with the program's output as it comes.
        run: Makes the run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = request.command.model_copy(update={"env": {**request.command.env, **traces.variables(folder)}})
        asked = request.model_copy(update={"command": command, "writable": [*request.writable, folder]})
        ended = run(asked, on_output=on_output)
        processes = traces.read(folder)
    if chrome is not None:
        chrome.write_text(json.dumps(traces.chrome(processes)), encoding="utf-8")
    return TraceOutput(
        outcome=ended.outcome,
        explanation=ended.explanation,
        device=ended.device,
        fallbacks=[_fallback(one) for one in ended.warnings if one.get("kind") == "cpu-fallback"],
        processes=[_process(one) for one in processes],
        chrome=str(chrome) if chrome is not None else None,
    )


def _fallback(warning: dict[str, Any]) -> Fallback:
    place = f"{warning['file']}:{warning.get('line')}" if warning.get("file") else ""
    return Fallback(message=str(warning.get("message", "")), place=place)


def _process(record: dict[str, Any]) -> ProcessTrace:
    steps = [StepCost(step=int(step), **cost) for step, cost in record["per_step"].items()]
    return ProcessTrace.model_validate({**record, "per_step": steps})


def schema() -> str:
    """The JSON schema of the answer, as published in ``docs/schema``."""
    found = TraceOutput.model_json_schema(mode="serialization")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **found}, indent=2) + "\n"


# The tables for a person.

Section = tuple[str, list[str], list[list[str]]]


def sections(process: ProcessTrace, fallbacks: Iterable[Fallback], most: int) -> list[Section]:
    """The tables of one process: title, heads and rows, those with most to say first; empty ones have no rows."""
    return [
        ("operators on the device, by time", ["calls", "seconds", "operator", "shapes", "dtype", "phase", "line"],
         _operators(process, "device", most)),
        ("operators on the CPU, by time", ["calls", "seconds", "operator", "shapes", "dtype", "phase", "line"],
         _operators(process, "host", most)),
        ("host syncs", ["times", "steps", "what", "phase", "line"],
         [[str(s.count), str(len(s.steps)), s.kind, s.phase, s.place]
          for s in sorted(process.syncs, key=lambda s: -s.count)[:most]]),
        ("dynamic shapes", ["operator", "shapes", "why", "line"],
         [[d.name, _short(d.shapes), d.why, d.place] for d in process.dynamic[:most]]),
        ("CPU fallbacks", ["what", "line"], [[f.message, f.place] for f in fallbacks][:most]),
        ("graph breaks of torch.compile", ["times", "reason", "line"],
         [[str(b.count), b.reason, b.place] for b in process.graph_breaks[:most]]),
        ("recompilations by torch.compile", ["step", "guards that failed", "line"],
         [[str(r.step), "; ".join(r.causes), r.place] for r in process.recompilations[:most]]),
        ("steps", ["step", "seconds", "programs compiled"],
         [[str(s.step), f"{s.seconds:.3f}", str(s.compilations)] for s in process.per_step[:most]]),
        (f"compilations after step {WARM_UP}", ["step", "programs", "operator", "cause", "phase", "line"],
         [[str(c.step), str(c.programs), c.operator, c.cause, c.phase, c.place] for c in process.late[:most]]),
    ]  # fmt: skip


def _operators(process: ProcessTrace, where: Literal["device", "host"], most: int) -> list[list[str]]:
    mine = [one for one in process.operators if (one.device == process.device) == (where == "device")]
    rows = sorted(mine, key=lambda one: -one.seconds)[:most]
    return [
        [str(one.count), f"{one.seconds:.3f}", one.name, _short(one.shapes), _kinds(one.dtypes), one.phase, one.place]
        for one in rows
    ]


def _short(shapes: list[list[int]], most: int = 4) -> str:
    text = " ".join("x".join(map(str, shape)) or "scalar" for shape in shapes[:most])
    return f"{text} and {len(shapes) - most} more" if len(shapes) > most else text


def _kinds(dtypes: list[str]) -> str:
    return " ".join(dict.fromkeys(dtypes))
