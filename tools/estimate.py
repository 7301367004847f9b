"""Estimates the time of a step as TorchTPU launches it: program by program, each compiled for the target.

`tools.profile` compiles the whole step as one program, which is what a step can come to. What a program launches is
seldom that: without torch.compile it is one program for every operator. Nothing here is measured. The time the host
takes to launch programs is not in the estimate; their number is told instead.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools import profile as profiler
from tools.errors import Exit, UserError
from tools.profile import ProfileRequest, Tell

_FEW = 4
_CYCLES = re.compile(r'"estimated_cycles":"?\d+"?')

Mode = Literal["launched", "operators", "compiled"]


class Program(BaseModel):
    """One of the programs that a step launches, however often."""

    kind: str = Field(description="operator, compiled or deferred")
    operators: list[str] = Field(description="the first few operators it computes")
    times: int
    seconds: float = Field(description="of all its launches")
    outcome: str = "ok"


class Estimate(BaseModel):
    """What a step takes on the target, by the compiler and our model of time."""

    mode: Mode
    target: str
    outcome: str = Field(description="ok, or what the compilation of a program came to")
    message: str = ""
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    launches: int = Field(default=0, description="programs launched in a step; their launches are not in the time")
    programs: list[Program] = Field(default=[], description="the different ones, most expensive first")
    left_out: int = Field(default=0, description="launches whose program could not be compiled; not in the time")
    peak: float | None = Field(default=None, description="bytes of HBM of the whole step as one program")
    limit: float | None = None
    with_cycles: bool = Field(default=True, description="the compiler's cycles were used")
    samples: int | None = Field(default=None, description="rows of the batch, where an input from the host tells")

    @property
    def per_sample(self) -> float | None:
        """Seconds of one row of the batch."""
        return self.seconds / self.samples if self.seconds is not None and self.samples else None


def estimate(request: ProfileRequest, mode: Mode = "launched", tell: Tell = lambda _: None) -> Estimate:
    """Estimate a step program by program.

    Args:
        request: What to profile. With `quick` the compiler's cycles are left out everywhere, and the compiler is
            stopped early where the whole step is one program.
        mode: ``launched`` as the program asks for, ``operators`` one by one, ``compiled`` as one program.
        tell: Called with what is being done.

    Raises:
        UserError: The program cannot be recorded or lowered.
    """
    # What a program writes beside itself makes its folder another one.
    place = profiler.place_of(request)
    whole = profiler.profile(request, tell)
    samples = batch_of(whole.profile)
    if whole.outcome != "ok" or mode == "compiled":
        return _whole(whole, request, samples)
    parts = lowered(request, place, mode, tell)
    if [part["kind"] for part in parts] == ["compiled"] and parts[0]["times"] == 1 and mode == "launched":
        return _whole(whole, request, samples).model_copy(update={"mode": mode})
    found = _parts(parts, request, mode, tell)
    memory = whole.profile["memory"]
    return found.model_copy(update={"peak": memory["peak"], "limit": memory["limit"], "samples": samples})


def batch_of(profile: dict[str, Any]) -> int | None:
    """Rows of the batch: the first side of the inputs that come from the host, where they agree."""
    sides = {shape[0] for shape in profile["step"].get("from_host", []) if shape}
    return sides.pop() if len(sides) == 1 else None


def _whole(output: profiler.ProfileOutput, request: ProfileRequest, samples: int | None) -> Estimate:
    time, memory = output.profile["time"] or {}, output.profile["memory"]
    return Estimate(
        mode="compiled",
        target=request.target,
        outcome=output.outcome,
        message=output.profile["message"][:600],
        seconds=time.get("seconds"),
        low=time.get("low"),
        high=time.get("high"),
        launches=1,
        peak=memory["peak"],
        limit=memory["limit"],
        with_cycles=not output.profile["scheduled_only"],
        samples=samples,
    )


def lowered(request: ProfileRequest, place: Path, mode: Mode, tell: Tell) -> list[dict[str, Any]]:
    """The different programs of a step recorded at a place, as StableHLO; kept beside the recording."""
    kept = place / f"parts-{mode}.json.gz"
    if not kept.is_file():
        tell("lowering the programs of the step")
        scratch = Path(tempfile.mkdtemp(prefix="parts-", dir=place.parent))
        try:
            (scratch / "step.json").write_bytes(gzip.decompress((place / profiler.STEP).read_bytes()))
            answer = profiler.run_lowering(request, scratch, mode)
            kept.write_bytes(gzip.compress(answer.read_bytes(), 3))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return list(json.loads(gzip.decompress(kept.read_bytes())))


def _parts(parts: list[dict[str, Any]], request: ProfileRequest, mode: Mode, tell: Tell) -> Estimate:
    found = Estimate(mode=mode, target=request.target, outcome="ok", seconds=0.0, low=0.0, high=0.0)
    for part, compiled in zip(parts, _compiled(parts, request, tell), strict=True):
        _add(found, part, compiled, request)
    found.with_cycles = not request.quick
    found.programs.sort(key=lambda program: -program.seconds)
    if not any(program.outcome == "ok" for program in found.programs):
        raise UserError(f"No program of the step could be compiled: {found.message}", "", Exit.FAILED)
    return found


def _compiled(parts: list[dict[str, Any]], request: ProfileRequest, tell: Tell) -> list[Any]:
    """What the compiler makes of each program: small ones in one child, with `quick` the large ones by themselves."""
    from torchtpu import compiler
    from torchtpu.compiler_batch import compile_programs

    target, cache = profiler.target_named(request.target), request.state / "compiled"
    found: list[Any] = [None if "text" in part else compiler.Compiled("failed", part["error"]) for part in parts]
    programs = {
        at: compiler.Program(part["text"], {int(name): result for name, result in part["donated"].items()})
        for at, part in enumerate(parts)
        if "text" in part
    }
    # Stopped when memory and schedule are settled: the code of a whole forward pass takes minutes to generate.
    large = [at for at in programs if request.quick and len(parts[at]["operators"]) > _FEW]
    for number, at in enumerate(large, 1):
        found[at] = compiler.compile_program(
            programs[at],
            target,
            cache,
            time_limit=request.compile_timeout,
            memory_limit=request.compile_memory,
            scheduled_only=True,
            on_progress=lambda said, number=number: tell(f"program {number} of {len(large)} large ones: {said}"),  # type: ignore[misc]
        )
    small = [at for at in programs if at not in large]
    made = compile_programs(
        [programs[at] for at in small],
        target,
        cache,
        time_limit=request.compile_timeout,
        on_progress=lambda said: tell(f"compiling for {target.name}: {said}"),
    )
    for at, compiled in zip(small, made, strict=True):
        found[at] = compiled
    return found


def _add(found: Estimate, part: dict[str, Any], compiled: Any, request: ProfileRequest) -> None:
    from dataclasses import replace

    from torchtpu.lowering.partition import VIEWS
    from torchtpu.profile import Profiler

    names = [entry["op"] for entry in part["step"]["operators"] if entry["op"] not in VIEWS][:6]
    row = Program(kind=part["kind"], operators=names, times=part["times"], seconds=0.0, outcome=compiled.outcome)
    found.launches += part["times"]
    if compiled.outcome != "ok" or not compiled.hlo:
        found.left_out += part["times"]
        found.message = found.message or f"{names}: {compiled.message[:300]}"
    else:
        text = _CYCLES.sub('"estimated_cycles":"0"', compiled.hlo) if request.quick else compiled.hlo
        profiled = Profiler(part["step"], replace(compiled, hlo=text), profiler.target_named(request.target)).profile()
        for name in ("seconds", "low", "high"):
            setattr(found, name, getattr(found, name) + profiled["time"][name] * part["times"])
        row.seconds = profiled["time"]["seconds"] * part["times"]
    found.programs.append(row)
