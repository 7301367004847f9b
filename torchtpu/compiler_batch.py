"""Compiles many small programs for a TPU that is not there, in few children; the cache is that of single ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from torchtpu import compiler
from torchtpu.compiler import FAILED, OK, OUT_OF_MEMORY, TIME_LIMIT, Compiled, Program
from torchtpu.targets import Target

# A child that ends early loses only the program it was at.
_POLL = 0.2


def compile_programs(
    programs: Sequence[Program],
    target: Target,
    cache: Path,
    *,
    time_limit: float = 600.0,
    on_progress: Callable[[str], None] | None = None,
) -> list[Compiled]:
    """Compiles programs one after another, whole, for one device of a target.

    Args:
        programs: What to compile.
        target: For which chip.
        cache: Folder of results, made where it is missing.
        time_limit: Seconds after which one program is given up.
        on_progress: Called with how many are done.
    """
    places = [cache / compiler.key(program, target) for program in programs]
    found = {at: compiler.read(place, cached=True) for at, place in enumerate(places) if compiler.is_kept(place)}
    found = {at: result for at, result in found.items() if not _is_unread(result)}
    missing = [at for at in range(len(programs)) if at not in found]
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(prefix="compiling-", dir=cache))
    try:
        while missing:
            for at, result in _child([(at, programs[at]) for at in missing], target, scratch, time_limit, on_progress):
                found[at] = result
                if result.outcome in (OK, OUT_OF_MEMORY) and not _is_unread(result):
                    compiler.keep(result, places[at], scratch)
            missing = [at for at in missing if at not in found]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for at, result in found.items():
        if _is_unread(result):
            found[at] = compiler.compile_program(programs[at], target, cache, time_limit=time_limit, fresh=True)
    return [found[at] for at in range(len(programs))]


def _is_unread(result: Compiled) -> bool:
    """Whether a program was compiled that jaxlib is too old to read back; a child of its own leaves it in a dump."""
    return result.outcome == OK and not result.hlo


def _child(
    wanted: list[tuple[int, Program]],
    target: Target,
    scratch: Path,
    time_limit: float,
    on_progress: Callable[[str], None] | None,
) -> list[tuple[int, Compiled]]:
    """Results of one child, at least one: where it ends early or takes too long, the one it was at has failed."""
    folders = []
    for at, program in wanted:
        folder = scratch / str(at)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        folders.append(folder)
        compiler.write_spec(program, target, folder)
    dumps = scratch / "dumps"
    dumps.mkdir(exist_ok=True)
    with (scratch / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "torchtpu.compiler_child", *(str(folder / "spec.json") for folder in folders)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in compiler.environment(dumps).items() if name != "XLA_FLAGS"},
            cwd=scratch,
            start_new_session=True,
        )
        try:
            late = _wait(child, folders, time_limit, on_progress)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    return list(_results(wanted, folders, scratch, late, child.returncode))


def _wait(
    child: subprocess.Popen[bytes], folders: list[Path], limit: float, on_progress: Callable[[str], None] | None
) -> bool:
    """Waits for the child to end; says whether one program took too long."""
    done, since, told = 0, time.monotonic(), time.monotonic()
    while child.poll() is None:
        ready = sum((folder / "answer.json").is_file() for folder in folders[done:]) + done
        now = time.monotonic()
        if ready > done:
            done, since = ready, now
        if now - since > limit:
            return True
        if on_progress is not None and now - told > 5:
            told = now
            on_progress(f"{done} of {len(folders)} programs compiled")
        try:
            child.wait(_POLL)
        except subprocess.TimeoutExpired:
            continue
    return False


def _results(
    wanted: list[tuple[int, Program]], folders: list[Path], scratch: Path, late: bool, code: int
) -> list[tuple[int, Compiled]]:
    found: list[tuple[int, Compiled]] = []
    for (at, _), folder in zip(wanted, folders, strict=True):
        answer = folder / "answer.json"
        if not answer.is_file():
            tail = "\n".join((scratch / "log").read_text(errors="replace").strip().splitlines()[-8:])
            message = "it took too long" if late else f"the compiler ended with {code}: {tail}"
            return [*found, (at, Compiled(TIME_LIMIT if late else FAILED, message))]
        said = json.loads(answer.read_text())
        text = folder / "program.hlo"
        hlo = text.read_text() if text.is_file() else ""
        found.append(
            (at, Compiled(said["outcome"], said["message"], said["memory"], said["seconds"], said["host_memory"], hlo))
        )
    return found
