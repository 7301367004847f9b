"""Estimates what one step of a program costs on a TPU, with the real compiler and without the TPU."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools import run as runner
from tools.commands import Command
from tools.errors import Exit, UserError
from torchtpu.targets import GENERATIONS, Target, UnknownTarget, describe, find

FORMAT = 6
GIB = 2**30
_LARGE = 8 * 2**20
STEP, _PROGRAM, _ABOUT = "step.json.gz", "program.mlir.gz", "about.json"
_LOWERING_LIMIT = 1800.0

Tell = Callable[[str], None]


class ProfileRequest(BaseModel):
    """Which program to profile, and for what."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    command: Command
    cwd: Path = Field(description="where it runs: a copy, since it may write there")
    original: Path = Field(description="the folder that cwd is a copy of; its files name the entry of the cache")
    target: str
    step: int = Field(default=2, description="which optimizer step is recorded, from 1")
    python: Path | None = None
    timeout: float | None = None
    memory: int | None = None
    sandbox: bool = True
    compile_timeout: float = 3600.0
    compile_memory: int = 8 * GIB
    fresh: bool = False
    quick: bool = Field(default=False, description="stop the compiler before it generates code: no cycles")
    state: Path = Field(description="folder of the caches")


class Timing(BaseModel):
    """Seconds of wall time by part; a part that came from the cache took none."""

    capture: float = 0.0
    lowering: float = 0.0
    compile: float = 0.0
    analysis: float = 0.0
    whole: float = 0.0


class ProfileOutput(BaseModel):
    """A profile, and how it came about."""

    outcome: Literal["ok", "out-of-memory", "failed", "time-limit", "memory-limit"]
    target: str
    command: str
    timing: Timing
    cached: list[str] = Field(default=[], description="parts that came from the cache")
    profile: dict[str, Any]
    attempts: list[dict[str, Any]] = Field(default=[], description="what was tried to make it fit")


def target_named(name: str) -> Target:
    """The target of a name.

    Raises:
        UserError: There is none.
    """
    try:
        return find(name)
    except UnknownTarget as error:
        raise UserError(f"{error}.", "See: torchtpu-agent targets") from error


def targets() -> list[dict[str, Any]]:
    """One chip of each generation with its figures, each with its source."""
    return [describe(find(name)) for name in GENERATIONS]


def fingerprint(folder: Path) -> str:
    """A digest of a folder's files: contents of the small ones, size and time of the large."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if {".git", "__pycache__", "node_modules", ".venv"} & set(parts) or not path.is_file():
            continue
        about = path.stat()
        digest.update("/".join(parts).encode() + b"\0")
        if about.st_size <= _LARGE:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        else:
            digest.update(f"{about.st_size} {about.st_mtime_ns}".encode())
    return digest.hexdigest()


def is_recorded(request: ProfileRequest) -> bool:
    """Whether the step is in the cache, so that the program need not run."""
    return not request.fresh and (place_of(request) / _ABOUT).is_file()


def place_of(request: ProfileRequest) -> Path:
    """Where the recording of a request is kept."""
    return request.state / "steps" / _key(request)


def profile(request: ProfileRequest, tell: Tell = lambda _: None) -> ProfileOutput:
    """Record one step of a program, compile it for the target and say what it costs there.

    The program runs with tensors on the device that have no data, so it needs neither a TPU nor the memory of
    one. Nothing is measured: the time is an estimate by the model that the answer carries.

    Args:
        request: What to profile.
        tell: Called with what is being done.

    Raises:
        UserError: The program, or an operator of it, cannot be recorded or lowered.
    """
    from torchtpu import compiler
    from torchtpu.profile import Profiler

    began = time.monotonic()
    target = target_named(request.target)
    timing, cached = Timing(), []
    place = place_of(request)
    if not is_recorded(request):
        _record(request, place, timing, tell)
    else:
        cached.append("program")
    step = json.loads(gzip.decompress((place / STEP).read_bytes()))
    text = gzip.decompress((place / _PROGRAM).read_bytes()).decode()
    about = json.loads((place / _ABOUT).read_text())
    step["notes"] = [*step["notes"], *about["notes"]]
    program = compiler.Program(text, {int(argument): result for argument, result in about["donated"].items()})
    started = time.monotonic()
    compiled = compiler.compile_program(
        program,
        target,
        request.state / "compiled",
        time_limit=request.compile_timeout,
        memory_limit=request.compile_memory,
        fresh=request.fresh,
        scheduled_only=request.quick,
        on_progress=lambda said: tell(f"compiling for {target.name}: {said}"),
    )
    if compiled.cached:
        cached.append("compilation")
    timing.compile = time.monotonic() - started
    started = time.monotonic()
    found = Profiler(step, compiled, target).profile()
    timing.analysis = time.monotonic() - started
    timing.whole = time.monotonic() - began
    return ProfileOutput(
        outcome=found["outcome"],
        target=target.name,
        command=request.command.text,
        timing=timing,
        cached=cached,
        profile=found,
    )


def _key(request: ProfileRequest) -> str:
    from torchtpu.compiler import versions

    about = [
        FORMAT, request.command.argv, sorted(request.command.env.items()), request.step, str(request.python),
        versions(), fingerprint(request.original),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(about, default=str).encode()).hexdigest()[:32]


def _record(request: ProfileRequest, place: Path, timing: Timing, tell: Tell) -> None:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(prefix="recording-", dir=place.parent))
    try:
        started = time.monotonic()
        tell("recording a step")
        step = _capture(request, scratch)
        timing.capture = time.monotonic() - started
        started = time.monotonic()
        tell(f"lowering {len(step['operators'])} operators")
        _lower(request, scratch)
        timing.lowering = time.monotonic() - started
        _keep(scratch, step, place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _keep(scratch: Path, step: dict[str, Any], place: Path) -> None:
    from torchtpu.lowering.child import ABOUT_FILE, PROGRAM_FILE

    made = scratch / "kept"
    made.mkdir()
    (made / STEP).write_bytes(gzip.compress(json.dumps(step).encode(), 3))
    (made / _PROGRAM).write_bytes(gzip.compress((scratch / PROGRAM_FILE).read_bytes(), 3))
    shutil.copy(scratch / ABOUT_FILE, made / _ABOUT)
    if place.exists():
        shutil.rmtree(place)
    made.rename(place)


def _capture(request: ProfileRequest, scratch: Path) -> dict[str, Any]:
    """Run the program until a step is recorded."""
    from torchtpu.launch import LaunchSpec, launch
    from torchtpu.lowering import capture

    folder = scratch / "capture"
    folder.mkdir()
    spec = LaunchSpec(
        argv=request.command.argv,
        cwd=request.cwd,
        env={**request.command.env, **capture.variables(folder, request.step)},
        # Hardware would run the program; here it is only recorded.
        device="simulated",
        python=request.python,
        max_steps=request.step,
        time_limit=request.timeout,
        memory_limit=request.memory or runner.most_memory(),
        sandbox="auto" if request.sandbox else "off",
        writable=[folder],
    )
    result = launch(spec)
    path = folder / capture.STEP_FILE
    if not path.is_file() and result.steps == 0:
        path = folder / capture.FORWARD_FILE
    if not path.is_file():
        raise UserError(
            f"No step of '{request.command.text}' was recorded. {result.explain()}",
            "A step ends with an optimizer's step() on tensors on the TPU: has the program been migrated?",
            Exit.FAILED,
        )
    step: dict[str, Any] = json.loads(path.read_text())
    step["notes"] = _notes(step, path.name == capture.FORWARD_FILE)
    _shorten(step, f"{request.cwd.resolve()}{os.sep}")
    if not step["operators"]:
        raise UserError(
            "The step recorded has no operator on the TPU.",
            "Migrate the program first: torchtpu-agent migrate",
            Exit.FAILED,
        )
    (scratch / "step.json").write_text(json.dumps(step))
    return step


def _notes(step: dict[str, Any], forward: bool) -> list[str]:
    found = []
    if forward:
        found.append("the program has no optimizer step: this is one call of its module, without gradients")
    if step["reads"]:
        found.append(f"{len(step['reads'])} times the program asked for a value in it, and was given a made-up one")
    return found


def _shorten(step: dict[str, Any], root: str) -> None:
    """Names the program's files from its own folder."""
    step["stacks"] = [
        [(file.removeprefix(root), line, function) for file, line, function in stack] for stack in step["stacks"]
    ]


def _lower(request: ProfileRequest, scratch: Path) -> None:
    error = json.loads(run_lowering(request, scratch).read_text())["error"]
    if error:
        raise UserError(f"TorchTPU cannot lower the step: {error}", "", Exit.FAILED)


def run_lowering(request: ProfileRequest, scratch: Path, mode: str = "") -> Path:
    """Lower the `step.json` of a folder in a child, whole or cut into programs; returns the file of the answer.

    Raises:
        UserError: The child gave none.
    """
    import torchtpu
    from torchtpu.lowering.child import ABOUT_FILE, PARTS_FILE

    package = Path(torchtpu.__file__).resolve().parents[1]
    path = scratch / "path"
    path.mkdir()
    # Only this one package of ours, whatever lies beside it.
    (path / "torchtpu").symlink_to(package / "torchtpu", target_is_directory=True)
    python = str(request.python or sys.executable)
    done = subprocess.run(
        [python, "-m", "torchtpu.lowering.child", str(scratch / "step.json"), str(scratch), *([mode] if mode else [])],
        env={**os.environ, "PYTHONPATH": str(path), "TPU_SKIP_MDS_QUERY": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LOWERING_LIMIT,
        cwd=scratch,
        check=False,
    )
    answer = scratch / (PARTS_FILE if mode else ABOUT_FILE)
    if not answer.is_file():
        tail = "\n".join(done.stderr.strip().splitlines()[-6:])
        raise UserError(f"Lowering ended with {done.returncode}: {tail}", "", Exit.FAILED)
    return answer
