"""`python -m evals.tuning`: known programs before and after `tune`, and the same GPT in plain JAX.

What is compared is the estimate, by the same compiler and the same model of time; nothing is measured on a TPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.runs import home
from evals import results, task
from evals.ecosystem import checkout
from evals.ecosystem.projects import PROJECTS
from evals.tuning.page import page

_NAME = "tuning"
_NANO = "python train.py --eval_iters=1 --gradient_accumulation_steps=1 --compile=False --dtype=bfloat16"
_TINY = " --batch_size=4 --block_size=64 --n_layer=2 --n_head=2 --n_embd=64"


@dataclass(frozen=True)
class Case:
    """A program to tune.

    Attributes:
        name: As results call it.
        title: For people.
        entry: What to run.
        small: What verification runs; None for the same.
        sizes: Of the same model in JAX.
    """

    name: str
    title: str
    entry: str
    small: str | None
    sizes: dict[str, int]


CASES = (
    Case(
        "chargpt",
        "the bundled example, a GPT of 0.8 million parameters, batch 32 x 64, autocast, AdamW",
        "python train.py --max-iters 20 --log-every 5 --eval-batches 2 --num-workers 0",
        None,
        {"layers": 4, "width": 128, "heads": 4, "vocabulary": 42, "length": 64, "batch": 32, "bias": 1},
    ),
    Case(
        "nanogpt",
        "nanoGPT, GPT-2 124M, batch 8 x 1024, bfloat16 autocast, AdamW, its own torch.compile switched off",
        f"{_NANO} --batch_size=8",
        f"{_NANO}{_TINY}",
        {"layers": 12, "width": 768, "heads": 12, "vocabulary": 50304, "length": 1024, "batch": 8, "bias": 0},
    ),
)


def lay_out(case: Case, folder: Path, sources: Path | None) -> None:
    """Put the program as its authors wrote it into a folder, with data where it has none."""
    if case.name == "chargpt":
        task.load("chargpt").checkout(folder)
        return
    import numpy as np

    checkout.make(next(one for one in PROJECTS if one.repository.endswith("/nanoGPT")), folder, sources)
    data = folder / "data" / "openwebtext"
    data.mkdir(parents=True, exist_ok=True)
    for name in ("train", "val"):
        np.random.RandomState(0).randint(0, 50257, 200_000).astype(np.uint16).tofile(data / f"{name}.bin")


def tuned(case: Case, folder: Path, target: str, more: list[str]) -> dict[str, Any]:
    """The report of a tuning; the batch stays, so that before and after take the same samples."""
    words = ["tune", str(folder), "--entry", case.entry, "--target", target, "--keep-batch", "--verify-steps", "4"]
    words += ["--verify-entry", case.small] if case.small else []
    done = subprocess.run(
        [sys.executable, "-m", "agents.cli", *words, *more, "--json"],
        cwd=results.ROOT, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def in_jax(case: Case, target: str, quick: bool, state: Path) -> dict[str, Any]:
    """Estimates of the same step in plain JAX, with XLA's attention and with the Pallas kernel."""
    found = {}
    for attention in ("plain", "flash"):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "step.json"
            done = subprocess.run(
                [sys.executable, "-m", "evals.tuning.jax_gpt", str(path), json.dumps(case.sizes), attention],
                cwd=results.ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                # The Pallas kernel takes no sequence shorter than its blocks.
                message = (done.stderr.strip().splitlines() or [""])[-1]
                found[attention] = {"outcome": "failed", "message": message[:300], "seconds": None}
                continue
            lowered = json.loads(path.read_text())
        found[attention] = _estimated(lowered, case.sizes, target, quick, state)
    return found


def _estimated(lowered: dict[str, Any], sizes: dict[str, int], target: str, quick: bool, state: Path) -> dict[str, Any]:
    from evals.tuning.kernels import KernelProfiler
    from torchtpu.compiler import Program, compile_program
    from torchtpu.targets import find

    program = Program(lowered["text"], {int(at): result for at, result in lowered["donated"].items()})
    compiled = compile_program(program, find(target), state / "compiled", scheduled_only=quick, time_limit=3600)
    profile = KernelProfiler(compiled, find(target), sizes).profile()
    time = profile["time"] or {}
    return {
        "outcome": compiled.outcome,
        "message": compiled.message[:300],
        **{name: time.get(name) for name in ("seconds", "low", "high", "compiled_flops")},
        "peak": profile["memory"]["peak"],
    }


def _earlier(run: str) -> dict[str, Any]:
    """The report of a tuning that was made before."""
    return dict(json.loads((home() / "runs" / run / "report.json").read_text()))


def _record(case: Case, target: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    lay_out(case, folder, args.source_dir)
    report = _earlier(args.run) if args.run else tuned(case, folder, target, ["--quick"] if args.quick else [])
    kept = {name: report.get(name) for name in ("plain", "operators", "whole", "best", "speedup", "total", "trials")}
    for one in (kept["plain"], kept["operators"], kept["whole"], kept["best"]):
        if one:
            one["programs"] = one["programs"][:8]
    for trial in kept["trials"] or []:
        trial["before"], trial["after"] = ({"seconds": one["seconds"], "launches": one["launches"]} if one else None
                                           for one in (trial["before"], trial["after"]))  # fmt: skip
    return {
        "name": case.name,
        "title": case.title,
        "entry": case.entry,
        "target": target,
        "quick": args.quick,
        **kept,
        "error": report.get("error"),
        "jax": in_jax(case, target, args.quick, home() / "profiles"),
        "date": results.today(),
        "revision": results.revision(),
        "versions": results.versions(Path(sys.executable)),
    }


def main() -> None:
    """Tune what is asked for, print a line each, and publish when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    parser.add_argument("--target", default="v6e-1")
    parser.add_argument("--source-dir", type=Path, help="folder with checkouts by the repository's name")
    parser.add_argument("--run", help="take the report of this run, of the case's own command, instead of tuning")
    parser.add_argument("--quick", action="store_true", help="stop the compiler before it generates code")
    parser.add_argument("--publish", action="store_true", help="write evals/results/tuning")
    args = parser.parse_args()
    records = {(one["name"], one["target"]): one for one in results.read(_NAME)}
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if args.case and case.name not in args.case:
                continue
            record = _record(case, args.target, args, Path(scratch) / case.name)
            records[case.name, args.target] = results.without_places(record)
            print(case.name, record["total"], record["error"] or "", flush=True)
            if args.publish:
                results.publish(_NAME, list(records.values()), page(list(records.values())))


if __name__ == "__main__":
    main()
