"""What recording costs: `python -m evals.recorder_cost` runs the example bare and recorded, on the device.

Prints wall time and peak memory of both; the limits are 2 and 1.5 times the bare run.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from evals import task as tasks
from tools.patch import patch_steps
from torchtpu.launch import LaunchSpec, launch
from torchtpu.proof.spec import Proof

REPEATS = 3
TIMES, MEMORY = 2.0, 1.5
_ARGUMENTS = ["--max-iters", "20", "--log-every", "5", "--eval-batches", "2"]
# Peak memory is the program's own to tell: a supervisor sees only samples.
_PROGRAM = """
import atexit, resource, runpy, sys
atexit.register(lambda: open("peak.txt", "w").write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)))
sys.path.insert(0, "")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def measure(tree: Path, proof: Proof | None) -> tuple[float, float]:
    """Seconds and MiB of one run of the example."""
    argv = ["python", "-c", _PROGRAM, "train.py", *_ARGUMENTS]
    result = launch(LaunchSpec(argv=argv, cwd=tree, max_steps=20, time_limit=1800, proof=proof))
    if not result.outcome.good:
        raise SystemExit(f"the example did not end well: {result.explain()}")
    return result.duration, int((tree / "peak.txt").read_text()) / 1024


def main() -> int:
    """Measure both kinds of run in turns, and compare their medians."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tasks.load("chargpt").checkout(tree)
        for _ in patch_steps(tree):
            pass
        bare, recorded = [], []
        for number in range(REPEATS):
            bare.append(measure(tree, None))
            record = Path(folder) / f"record-{number}"
            record.mkdir()
            recorded.append(measure(tree, Proof(record=record)))
            shutil.rmtree(record)
    return _tell(bare, recorded)


def _tell(bare: list[tuple[float, float]], recorded: list[tuple[float, float]]) -> int:
    good = True
    for what, index, limit in (("seconds", 0, TIMES), ("MiB", 1, MEMORY)):
        without = statistics.median(one[index] for one in bare)
        with_it = statistics.median(one[index] for one in recorded)
        good = good and with_it <= limit * without
        print(f"{what:<8} bare {without:8.1f}  recorded {with_it:8.1f}  {with_it / without:.2f} times (limit {limit})")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
