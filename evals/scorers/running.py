"""Runs a task's entries in a copy of a tree: on the device, on the CPU, or with CUDA imitated there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from evals.candidates.answer import Limits
from evals.task import Task
from tools import run as runner
from tools.commands import Command, parse
from torchtpu.proof.spec import Proof

Where = Literal["device", "device with draws of the CPU", "cpu", "imitated CUDA"]
_COMPLETED = "completed"
_PROOFS: dict[Where, Proof] = {
    "imitated CUDA": Proof(oracle=True, draws=True),
    "device with draws of the CPU": Proof(draws=True),
}


def run(command: Command, tree: Path, place: Path, where: Where, limits: Limits) -> runner.RunOutput:
    """Run a command in a fresh copy of a tree, so that no run finds another's files.

    Args:
        command: What to run.
        tree: The tree; only read.
        place: Folder for the copy and the log; made anew.
        where: What it computes on.
        limits: Interpreter and time.
    """
    copy = fresh_copy(tree, place)
    return runner.run(
        runner.RunRequest(
            command=command, cwd=copy, device="auto" if where.startswith("device") else "cpu", python=limits.python,
            timeout=limits.timeout, log=place / "log", proof=_PROOFS.get(where),
        )
    )  # fmt: skip


def fresh_copy(tree: Path, place: Path) -> Path:
    """The files of a tree, without its history, in a folder that is made anew."""
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(tree, place / "work", symlinks=True, ignore=shutil.ignore_patterns(".git")))


def text(output: runner.RunOutput) -> str:
    """Everything that a program printed."""
    return Path(output.log).read_text(encoding="utf-8", errors="replace") if output.log else output.output_tail


def completed(output: runner.RunOutput) -> bool:
    """Whether a program came to its own end, with 0."""
    return output.outcome == _COMPLETED


def ends_well(task: Task, tree: Path, place: Path, limits: Limits) -> bool:
    """Whether every entry ends with 0 on the device."""
    return all(completed(run(parse(entry), tree, place, "device", limits)) for entry in task.entries)
