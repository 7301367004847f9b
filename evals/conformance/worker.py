"""Runs conformance cases one after another in this process, as the child of a supervisor."""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch

from evals.conformance.bench import Bench, Mode
from evals.conformance.comparison import compare, to_host
from evals.conformance.suites import load
from torchtpu import device


def _run(case: Callable[[Bench], Any], bench: Bench) -> tuple[Any, float]:
    start = time.perf_counter()
    torch.manual_seed(0)
    results = to_host(case(bench))
    return results, time.perf_counter() - start


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def judge(case: Callable[[Bench], Any], mode: Mode) -> dict[str, Any]:
    """Runs a case on the CPU and on the device and says how they compare.

    Returns:
        ``verdict`` (``match``, ``mismatch``, ``exception`` or ``reference-exception``) and details.
    """
    try:
        expected, reference_seconds = _run(case, Bench("cpu"))
    except Exception as error:  # noqa: BLE001  a case the CPU itself refuses says nothing about the device
        return {"verdict": "reference-exception", "detail": f"{type(error).__name__}: {error}"}
    if mode == "compile":
        torch._dynamo.reset()
    try:
        actual, seconds = _run(case, Bench("tpu", mode))
    except Exception as error:  # noqa: BLE001  any exception is a result here
        detail = f"{type(error).__name__}: {error}"[:600]
        return {"verdict": "exception", "detail": detail, "at": _place(error)}
    difference = compare(expected, actual)
    return {
        "verdict": "match" if difference.matches else "mismatch",
        "detail": difference.why,
        "absolute": difference.absolute,
        "relative": difference.relative,
        "vacuous": difference.vacuous,
        "seconds": round(seconds, 3),
        "reference_seconds": round(reference_seconds, 3),
    }


def main(suite: str, mode: Mode, results: Path, names: list[str]) -> None:
    """Brings the device up and appends a line before and after every case."""
    warnings.simplefilter("ignore")
    device.bring_up()
    torch.set_num_threads(1)
    if mode == "fuse":
        tpu = cast(Any, torch).tpu
        tpu.eager_mode = tpu.EagerMode.DEFER_AND_FUSE
    cases = load(suite)
    with results.open("a", buffering=1) as file:
        for name in names:
            file.write(json.dumps({"event": "start", "case": name}) + "\n")
            sys.stderr.write(f"\n== {name}\n")
            sys.stderr.flush()
            line = {"event": "done", "case": name, **judge(cases[name], mode)}
            file.write(json.dumps(line) + "\n")
        file.write(json.dumps({"event": "end"}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], cast(Mode, sys.argv[2]), Path(sys.argv[3]), sys.argv[4].split(","))
