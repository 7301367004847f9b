"""`python -m evals.profiles.published`: estimates of single operators against published measurements of them.

The share of the peak that no product exceeds was taken from the products on v5e and v6e, and the share of the
memory's bandwidth was chosen with the copies in sight; only the products on tpu7x are held out. They are single
operators, not steps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.runs import home
from evals import results
from torchtpu.compiler import Program, compile_program
from torchtpu.profile import Profiler
from torchtpu.targets import find

_NAME = "published_operators"
_NOTEBOOK = "jax-ml/jax@1082251c, docs/pallas/tpu/matmul.ipynb"
_V6 = "AI-Hypercomputer/tpu-recipes@c8cfe2f6, microbenchmarks/README.md"
_V7 = "AI-Hypercomputer/tpu-recipes@c8cfe2f6, microbenchmarks/ironwood/README.md"
MIB = 2**20


@dataclass(frozen=True)
class Published:
    """A measurement.

    Attributes:
        title: What was measured.
        target: On what.
        text: The same as StableHLO.
        seconds: The time, as printed or by the printed rate.
        source: Where it is printed.
    """

    title: str
    target: str
    text: str
    seconds: float
    source: str
    fitted: bool = False


def _matmul(size: int) -> str:
    kind = f"tensor<{size}x{size}xbf16>"
    return (
        f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{\n"
        f"  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}\n"
        f"  return %c : {kind}\n}}\n"
    )


def _copy(elements: int) -> str:
    kind = f"tensor<{elements}xbf16>"
    return f"func.func @main(%a: {kind}) -> {kind} {{\n  return %a : {kind}\n}}\n"


def _core_copy(mebibytes: int, rate: float) -> Published:
    size = mebibytes * MIB
    return Published(
        f"copy of {mebibytes} MiB, one core", "tpu7x-2", _copy(size // 2), 2 * size / (rate * 1e9), _V7, True
    )


def _core_matmul(size: int, rate: float) -> Published:
    return Published(f"product of {size}^3, one core", "tpu7x-2", _matmul(size), 2 * size**3 / (rate * 1e12), _V7)


FIGURES = (
    Published("product of 8192^3, timed on the host", "v5e", _matmul(8192), 6.0471e-3, _NOTEBOOK, fitted=True),
    Published("product of 8192^3", "v6e", _matmul(8192), 1.328756e-3, _V6, fitted=True),
    Published("copy of 32 MiB", "v6e", _copy(16 * MIB), 49.359e-6, _V6, fitted=True),
    _core_matmul(512, 105.08),
    _core_matmul(2048, 679.28),
    _core_matmul(16384, 950.13),
    _core_copy(8, 2246.1),
    _core_copy(32, 3009.8),
    _core_copy(128, 3176.5),
    _core_copy(512, 3199.0),
    _core_copy(1024, 3198.4),
    _core_copy(4096, 3197.9),
)
_NOTHING: dict[str, Any] = {"inputs": [], "operators": [], "kept": [], "stacks": [], "reads": [], "notes": []}


def _record(figure: Published, state: Path) -> dict[str, Any]:
    target = find(figure.target)
    compiled = compile_program(Program(figure.text), target, state / "compiled", time_limit=900)
    time = Profiler(_NOTHING, compiled, target).profile()["time"]
    shown = {name: time[name] if time else None for name in ("seconds", "low", "high")}
    error = shown["seconds"] / figure.seconds - 1 if shown["seconds"] else None
    return {
        "title": figure.title,
        "target": figure.target,
        "published": figure.seconds,
        **shown,
        "error": error,
        "source": figure.source,
        "fitted": figure.fitted,
        "outcome": compiled.outcome,
        "message": compiled.message[:200],
    }


def _page(records: list[dict[str, Any]]) -> str:
    known = [record for record in records if record["error"] is not None]
    rows = "\n".join(
        f"| {one['title']} | {one['target']} | {one['published'] * 1e6:.1f} | {one['seconds'] * 1e6:.1f}"
        f" | {one['low'] * 1e6:.1f} to {one['high'] * 1e6:.1f} | {one['error']:+.0%}"
        f" | {'known' if one['fitted'] else 'held out'} | {one['source']} |"
        for one in known
    )
    failed = "".join(f"\n- {one['title']}, {one['target']}: {one['outcome']}" for one in records if one not in known)
    held = [one for one in known if not one["fitted"]]
    median = statistics.median(abs(one["error"]) for one in held)
    worst = max(abs(one["error"]) for one in held)
    inside = sum(one["low"] <= one["published"] <= one["high"] for one in held)
    median_known = statistics.median(abs(one["error"]) for one in known if one["fitted"])
    return f"""# Estimates of single operators against published measurements

Made by `python -m evals.profiles.published --publish`. The share of the peak that no product exceeds (0.91) was taken
from the two `known` products, and the share of the memory's bandwidth (0.85) was chosen with the copies in sight; only
the others were held out. They are single operators, not steps: **no step time of a model has been compared.**

| what | target | published, us | estimate, us | range, us | error | part | source |
|---|---|---|---|---|---|---|---|
{rows}

Of the {len(held)} held out: median absolute error {median:.0%}, worst {worst:.0%}; {inside} inside the range.
Of the known ones: median {median_known:.0%}.{failed}

{results.today()}, commit {results.revision()}.
"""


def main() -> None:
    """Estimate all, print a line each, and publish when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, help="folder of the caches; default: the state directory's")
    parser.add_argument("--publish", action="store_true")
    args = parser.parse_args()
    records = []
    for figure in FIGURES:
        record = _record(figure, args.state or home() / "profiles")
        records.append(record)
        print(record, file=sys.stderr, flush=True)
    page = _page(records)
    print(page)
    if args.publish:
        results.publish(_NAME, records, page)


if __name__ == "__main__":
    main()
