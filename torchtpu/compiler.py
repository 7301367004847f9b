"""Compiles StableHLO for a TPU that is not there, in a child with limits, and keeps what came of it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from torchtpu.targets import Target

FORMAT = 1
PACKAGES = ("torch", "torch_tpu", "libtpu", "jax", "jaxlib")
HLO_FILE = "program.hlo.gz"
_RESULT = "result.json"
_POLL = 0.25
_TELL = 5.0

_LAST_DUMP = "*.after_optimizations_after_buffer_assignment.txt"
_ASSIGNMENT = "*.after_optimizations-buffer-assignment.txt"
_ALLOCATION = re.compile(r"^allocation \d+: size (\d+), (.*)$", re.MULTILINE)
_SCHEDULED = "scheduled"

OK, OUT_OF_MEMORY, FAILED, TIME_LIMIT, MEMORY_LIMIT = "ok", "out-of-memory", "failed", "time-limit", "memory-limit"


@dataclass(frozen=True)
class Program:
    """What to compile.

    Attributes:
        text: StableHLO.
        donated: Result that takes the buffer of an argument, by argument.
        options: Options of the compiler by name, such as ``xla_tpu_scoped_vmem_limit_kib``.
    """

    text: str
    donated: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """What came of a compilation.

    Attributes:
        outcome: ``ok``, ``out-of-memory``, ``failed``, ``time-limit`` or ``memory-limit``.
        message: What the compiler said when it is not ``ok``.
        memory: Bytes by kind: ``argument``, ``output``, ``alias``, ``temp`` and ``code``.
        seconds: Wall time of the compiler call, when it was made.
        host_memory: Bytes the child held at most.
        hlo: The optimised program; that before code generation where it did not fit; empty without one.
        cached: It comes from the disk.
        scheduled_only: The compiler was stopped when memory and schedule were settled, before it generated code.
    """

    outcome: str
    message: str = ""
    memory: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    host_memory: int = 0
    hlo: str = ""
    cached: bool = False
    scheduled_only: bool = False


@dataclass(frozen=True)
class Limits:
    """When a child is ended: after seconds, at bytes, or as soon as the program is scheduled."""

    seconds: float
    memory: int
    scheduled_only: bool


def versions() -> dict[str, str]:
    """Returns the versions a compiled program depends on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def key(program: Program, target: Target, scheduled_only: bool = False) -> str:
    """Returns the name of a compilation on the disk: the same program, target, options and versions share it."""
    how = [FORMAT, "scheduled"] if scheduled_only else [FORMAT]
    about = [*how, sorted(program.donated.items()), sorted(program.options.items()), target.compiler_name, versions()]
    digest = hashlib.sha256(json.dumps(about).encode())
    digest.update(program.text.encode())
    return digest.hexdigest()[:32]


def compile_program(
    program: Program,
    target: Target,
    cache: Path,
    *,
    time_limit: float = 3600.0,
    memory_limit: int = 8 * 2**30,
    fresh: bool = False,
    scheduled_only: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> Compiled:
    """Compiles for one device of a target.

    Args:
        program: What to compile.
        target: For which chip.
        cache: Folder of results, made where it is missing.
        time_limit: Seconds after which it is given up.
        memory_limit: Bytes the child may hold.
        fresh: Compile anew even where there is a result.
        scheduled_only: Stop when memory and schedule are settled: a twentieth of the time or so, but without
            the compiler's cycles. A whole compilation in the cache serves too.
        on_progress: Called with what is being done, every few seconds.
    """
    whole, place = cache / key(program, target), cache / key(program, target, scheduled_only)
    for known in () if fresh else (whole, place):
        if is_kept(known) and ((result := read(known, cached=True)).hlo or result.outcome != OK):
            return result
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(prefix="compiling-", dir=cache))
    limits = Limits(time_limit, memory_limit, scheduled_only)
    try:
        result = _in_child(program, target, scratch, limits, on_progress or (lambda _: None))
        # A limit is this machine's and may be another next time.
        if result.outcome in (OK, OUT_OF_MEMORY):
            keep(result, place, scratch)
        return result
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def is_kept(place: Path) -> bool:
    """Says whether the cache has a result at a place."""
    return (place / _RESULT).is_file()


def read(place: Path, cached: bool) -> Compiled:
    """Returns what the cache has at a place."""
    fields = json.loads((place / _RESULT).read_text())
    text = gzip.decompress((place / HLO_FILE).read_bytes()).decode() if (place / HLO_FILE).is_file() else ""
    return Compiled(**fields, hlo=text, cached=cached)


def keep(result: Compiled, place: Path, scratch: Path) -> None:
    """Puts a result into the cache, by way of a folder on the same disk."""
    made = scratch / "kept"
    made.mkdir()
    fields = {name: value for name, value in asdict(result).items() if name not in ("hlo", "cached")}
    (made / HLO_FILE).write_bytes(gzip.compress(result.hlo.encode(), 3))
    (made / _RESULT).write_text(json.dumps(fields, indent=1))
    if place.exists():
        shutil.rmtree(place)
    made.rename(place)


def environment(dumps: Path) -> dict[str, str]:
    """Returns the variables of a child that compiles."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TPU_", "TORCHTPU_", "XLA_"))}
    package = str(Path(__file__).resolve().parents[1])
    env["PYTHONPATH"] = os.pathsep.join(part for part in (package, env.get("PYTHONPATH", "")) if part)
    return env | {
        # There is nobody to ask which TPU this is.
        "TPU_SKIP_MDS_QUERY": "1",
        # libtpu else takes a lock of the whole machine, as if it were to drive a chip.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "JAX_PLATFORMS": "cpu",
        # The dumps hold the program where jaxlib cannot read it back.
        "XLA_FLAGS": f"--xla_dump_to={dumps}",
    }


def write_spec(program: Program, target: Target, folder: Path) -> None:
    """Writes what a child is to compile, as `spec.json` of a folder; it answers in `answer.json`."""
    (folder / "program.mlir").write_text(program.text)
    spec = {
        "program": str(folder / "program.mlir"),
        "topology": target.compiler_name,
        "donated": {str(argument): result for argument, result in program.donated.items()},
        "options": dict(program.options),
        "answer": str(folder / "answer.json"),
        "hlo": str(folder / "program.hlo"),
    }
    (folder / "spec.json").write_text(json.dumps(spec))


def _in_child(program: Program, target: Target, scratch: Path, limits: Limits, tell: Callable[[str], None]) -> Compiled:
    dumps, answer = scratch / "dumps", scratch / "answer.json"
    dumps.mkdir()
    write_spec(program, target, scratch)
    log = scratch / "log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "torchtpu.compiler_child", str(scratch / "spec.json")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(dumps),
            cwd=scratch,
            start_new_session=True,
        )
        began = time.monotonic()
        try:
            stopped, highest = _watch(child, dumps, limits, tell)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    if stopped == _SCHEDULED:
        return _scheduled(dumps, time.monotonic() - began, highest)
    if stopped:
        message = f"given up after {limits.seconds:.0f} s" if stopped == TIME_LIMIT else "it took too much memory"
        return Compiled(stopped, message, {}, 0, highest)
    return _answer(answer, scratch, dumps, log, highest, child.returncode)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _watch(child: subprocess.Popen[bytes], dumps: Path, limits: Limits, tell: Callable[[str], None]) -> tuple[str, int]:
    began = told = time.monotonic()
    highest = 0
    while child.poll() is None:
        now = time.monotonic()
        highest = max(highest, _resident(child.pid))
        if now - began > limits.seconds:
            return TIME_LIMIT, highest
        if highest > limits.memory:
            return MEMORY_LIMIT, highest
        if limits.scheduled_only and _is_scheduled(dumps):
            return _SCHEDULED, highest
        if now - told >= _TELL:
            told = now
            what = "generating code" if _is_scheduled(dumps) else "optimising"
            tell(f"{what}, {now - began:.0f} s, {highest / 2**30:.1f} GiB")
        try:
            child.wait(_POLL)
        except subprocess.TimeoutExpired:
            continue
    return "", highest


def _is_scheduled(dumps: Path) -> bool:
    """Says whether the last dump before code generation is there and whole."""
    for path in dumps.glob(_LAST_DUMP):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 8))
            return file.read().rstrip().endswith(b"}")
    return False


def _scheduled(dumps: Path, seconds: float, highest: int) -> Compiled:
    text = next(dumps.glob(_ASSIGNMENT)).read_text(errors="replace")
    hlo = next(dumps.glob(_LAST_DUMP)).read_text(errors="replace")
    return Compiled(OK, "", assigned(text), seconds, highest, hlo, scheduled_only=True)


def assigned(text: str) -> dict[str, int]:
    """Returns the bytes of HBM by kind from the compiler's dump of its buffer assignment."""
    found = dict.fromkeys(("argument", "output", "alias", "temp", "code"), 0)
    for size, about in _ALLOCATION.findall(text):
        if "color" in about or "thread-local" in about:
            continue
        kind = "argument" if "parameter" in about else "temp" if "preallocated-temp" in about else "output"
        found[kind] += int(size)
    return found


def _answer(answer: Path, scratch: Path, dumps: Path, log: Path, highest: int, code: int) -> Compiled:
    said: dict[str, Any] = json.loads(answer.read_text()) if answer.is_file() else {}
    if not said:
        tail = log.read_text(errors="replace").strip().splitlines()[-8:]
        return Compiled(FAILED, f"the compiler ended with {code}: " + "\n".join(tail), {}, 0, highest)
    text = scratch / "program.hlo"
    hlo = text.read_text() if text.is_file() else _dumped(dumps)
    return Compiled(
        said["outcome"], said["message"], said["memory"], said["seconds"], max(highest, said["host_memory"]), hlo
    )


def _dumped(dumps: Path) -> str:
    for pattern in ("*.after_codegen.txt", "*.after_optimizations.txt", "*after_optimizations_before_buffer*.txt"):
        found = sorted(dumps.glob(pattern), key=lambda path: path.stat().st_size)
        if found:
            return found[-1].read_text(errors="replace")
    return ""
