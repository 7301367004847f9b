"""What recording costs: `python -m evals.recorder_cost [--publish]` runs the example bare and recorded, on the device.

Prints wall time, processor time and peak memory of both; the limits are 2 times the bare run for time and 1.5 times
for memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from evals import results
from evals import task as tasks
from tools.patch import patch_steps
from torchtpu.launch import LaunchSpec, launch
from torchtpu.proof.spec import Proof

REPEATS = 3
LIMITS = {"wall s": 2.0, "processor s": 2.0, "peak MiB": 1.5}
_ARGUMENTS = ["--max-iters", "20", "--log-every", "5", "--eval-batches", "2"]
# Peak memory and processor time are the program's own to tell: a supervisor sees only samples.
_PROGRAM = """
import atexit, resource, runpy, sys
def tell():
    used = resource.getrusage(resource.RUSAGE_SELF)
    open("used.txt", "w").write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}")
atexit.register(tell)
sys.path.insert(0, "")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def measure(tree: Path, proof: Proof | None) -> tuple[float, float, float]:
    """Seconds of wall and processor time, and MiB, of one run of the example."""
    argv = ["python", "-c", _PROGRAM, "train.py", *_ARGUMENTS]
    result = launch(LaunchSpec(argv=argv, cwd=tree, max_steps=20, time_limit=1800, proof=proof))
    if not result.outcome.good:
        raise SystemExit(f"the example did not end well: {result.explain()}")
    processor, memory = map(float, (tree / "used.txt").read_text().split())
    return result.duration, processor, memory


def main() -> int:
    """Measure both kinds of run in turns, and compare their medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="write evals/results/recorder_cost.*")
    publish = parser.parse_args().publish
    bare, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tasks.load("chargpt").checkout(tree)
        for _ in patch_steps(tree):
            pass
        for number in range(REPEATS):
            bare.append(measure(tree, None))
            record = Path(folder) / f"record-{number}"
            record.mkdir()
            recorded.append(measure(tree, Proof(record=record)))
            shutil.rmtree(record)
    record = _compared(bare, recorded)
    page = _page(record)
    print(page)
    if publish:
        results.publish("recorder_cost", [record], page)
    return 0 if all(row["holds"] for row in record["rows"]) else 1


def _compared(bare: list[tuple[float, ...]], recorded: list[tuple[float, ...]]) -> dict[str, Any]:
    rows = []
    for index, (what, limit) in enumerate(LIMITS.items()):
        without, with_it = (statistics.median(one[index] for one in runs) for runs in (bare, recorded))
        times = with_it / without
        rows.append(
            {
                "what": what,
                "bare": without,
                "recorded": with_it,
                "times": times,
                "limit": limit,
                "holds": times <= limit,
            }
        )
    return {
        "date": results.today(), "revision": results.revision(), "versions": results.versions(Path(sys.executable)),
        "processors": os.cpu_count(), "load": os.getloadavg()[0], "repeats": REPEATS,
        "bare": bare, "recorded": recorded, "rows": rows,
    }  # fmt: skip


def _page(record: dict[str, Any]) -> str:
    lines = [
        "# What recording costs",
        "",
        f"Measured {record['date']} at {record['revision']} by `python -m evals.recorder_cost --publish`: the bundled"
        f" example, 20 steps on the simulated device, bare and recorded in turns; medians of {record['repeats']}."
        f" {record['processors']} processors, which other work shared: {record['load']:.1f} processes were running when"
        " it ended.",
        "",
        "| | bare | recorded | times | at most | holds |\n|---|---:|---:|---:|---:|---|",
        *(
            f"| {row['what']} | {row['bare']:.1f} | {row['recorded']:.1f} | {row['times']:.2f} | {row['limit']}"
            f" | {'yes' if row['holds'] else 'no'} |"
            for row in record["rows"]
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
