"""Speed of `torchtpu-agent scan` as ratios to ruff and to a bare `ast.parse`, in one run on one tree.

    python -m evals.bench_scan [TREE] [--repeats 5] [--json FILE] [--publish]

Without TREE, the sources of the installed torch package are copied and scanned. Every measurement is a whole
process, so starting up and importing count. Rounds are interleaved (one of each, then again), so that a busy machine
slows all of them alike; the medians are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.results import publish, revision, today, versions
from tools.code.source import Unreadable
from tools.engine import examine, is_python
from tools.project import Project
from tools.rules import selected

# Reads paths from its input, one a line. "off" leaves the garbage collector out, as the scanner does.
PARSE = """
import ast, gc, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "off":
    gc.disable()
for path in sys.stdin.read().splitlines():
    with open(path, "rb") as file:
        data = file.read()
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        pass
"""


# Compiled modules are kept, as they are where the program is installed.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Contender:
    """A command to time.

    Attributes:
        name: How it is called in the results.
        command: The process.
        stdin: What it reads.
        environment: Variables besides the usual ones.
    """

    name: str
    command: list[str]
    stdin: str = ""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Aim:
    """A ratio that should not be exceeded."""

    text: str
    over: str
    under: str
    limit: float


AIMS = [
    Aim("scan on two processes against ruff on two threads", "scan, 2 processes", "ruff, 2 threads", 3.0),
    Aim("scan on one process against parsing the prefiltered files", "scan, 1 process", "parse filtered, gc on", 1.3),
    Aim("the same without the garbage collector", "scan, 1 process", "parse filtered, gc off", 1.3),
]
REFERENCE = "parse of files with a common word, gc off"
COMMON = (b"cuda", b"nccl", b"xla", b"torch.compile", b"autocast", b"float16", b"DataParallel")
"""What a simple byte filter would go by; the reference does not move with the rules."""


def main() -> int:
    """Measure, print, and return 0 if every aim holds."""
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="bench-scan-") as scratch:
        tree = args.tree or copy_of_torch(Path(scratch) / "tree")
        result = measure(tree.resolve(), args.repeats)
    if args.publish:
        publish("scan_speed", [result], page(result))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    show(result)
    return int(not all(aim["holds"] for aim in result["aims"]))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m evals.bench_scan", description=__doc__.partition("\n")[0])
    parser.add_argument("tree", nargs="?", type=Path, help="folder to scan; default: a copy of the torch package")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--publish", action="store_true", help="write evals/results/scan_speed.{json,md}")
    return parser.parse_args()


def copy_of_torch(target: Path) -> Path:
    """Copy the Python sources of the installed torch: both tools leave out `site-packages` when they walk."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("torch is not installed; name a folder to scan")
    source = Path(spec.submodule_search_locations[0])
    for path in source.rglob("*.py"):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return target


def prefiltered(tree: Path) -> list[str]:
    """The Python files that the scan looks into: at least one rule asks to see them parsed."""
    project, rules = Project(tree), selected()
    found = []
    for path in filter(is_python, project.paths):
        try:
            data = project.read(path)
            if examine(path, data, project, rules, whole=False).parsed:
                found.append(str(tree / path))
        except Unreadable:
            continue
    return found


def contenders(tree: Path, filtered: list[str]) -> list[Contender]:
    """What is timed in each round."""
    scan = [sys.executable, "-m", "agents.cli", "scan", str(tree), "--format", "json", "--output", os.devnull]
    check = [ruff(), "check", "--select", "F", "--no-cache", "--isolated"]
    check += ["--quiet", "--exit-zero", "--output-format", "json", "--output-file", os.devnull, str(tree)]
    parse = [sys.executable, "-c", PARSE]
    everything = [str(path) for path in sorted(tree.rglob("*.py"))]
    return [
        *(Contender(f"scan, {n} process{'es' * (n > 1)}", [*scan, "--exit-zero", "--jobs", str(n)]) for n in (1, 2)),
        *(
            Contender(f"ruff, {n} thread{'s' * (n > 1)}", check, environment=(("RAYON_NUM_THREADS", str(n)),))
            for n in (1, 2)
        ),
        Contender("parse filtered, gc on", [*parse, "on"], "\n".join(filtered)),
        Contender("parse filtered, gc off", [*parse, "off"], "\n".join(filtered)),
        Contender(REFERENCE, [*parse, "off"], "\n".join(commonly(everything))),
        Contender("parse all, gc on", [*parse, "on"], "\n".join(everything)),
    ]


def commonly(paths: list[str]) -> list[str]:
    """The files that hold one of the common words."""
    return [path for path in paths if any(word in Path(path).read_bytes() for word in COMMON)]


def ruff() -> str:
    """The ruff beside this Python."""
    return str(Path(sys.executable).with_name("ruff"))


def measure(tree: Path, repeats: int) -> dict[str, Any]:
    """Time every contender `repeats` times, and compare the medians."""
    filtered = prefiltered(tree)
    chosen = contenders(tree, filtered)
    wall: dict[str, list[float]] = {c.name: [] for c in chosen}
    cpu: dict[str, list[float]] = {c.name: [] for c in chosen}
    for number in range(repeats + 1):
        for contender in chosen:
            elapsed, used = timed(contender)
            if number:  # the first round only warms the file cache
                wall[contender.name].append(elapsed)
                cpu[contender.name].append(used)
    files = list(tree.rglob("*.py"))
    return {
        "date": today(),
        "revision": revision(),
        "versions": versions(Path(sys.executable)),
        "ruff": subprocess.run([ruff(), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1],
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "files": len(files),
        "lines": sum(path.read_bytes().count(b"\n") for path in files),
        "filtered": len(filtered),
        "rules": len(selected()),
        "repeats": repeats,
        "seconds": {name: statistics.median(times) for name, times in wall.items()},
        "cpu_seconds": {name: statistics.median(times) for name, times in cpu.items()},
        "aims": [judged(aim, wall, cpu) for aim in AIMS],
        "reference": judged(Aim("", "scan, 1 process", REFERENCE, 1.3), wall, cpu),
    }


def judged(aim: Aim, wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> dict[str, Any]:
    """The ratio of the medians beside what it should be."""
    ratio = statistics.median(wall[aim.over]) / statistics.median(wall[aim.under])
    of_cpu = statistics.median(cpu[aim.over]) / statistics.median(cpu[aim.under])
    return {"aim": aim.text, "limit": aim.limit, "ratio": ratio, "cpu_ratio": of_cpu, "holds": ratio <= aim.limit}


def timed(contender: Contender) -> tuple[float, float]:
    """Wall and processor seconds of one process and its children."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(
        contender.command,
        input=contender.stdin.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        env={**_ENVIRONMENT, **dict(contender.environment)},
    )
    elapsed, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return elapsed, used


def page(result: dict[str, Any]) -> str:
    """The numbers as a page."""
    fixed = result["reference"]
    lines = [
        "# Speed of a scan",
        "",
        f"Measured {result['date']} at {result['revision']} by `python -m evals.bench_scan --publish`, on the sources "
        f"of torch {result['versions']['torch']}: {result['files']:,} files, {result['lines']:,} lines, of which "
        f"the scan with {result['rules']} rules looks into {result['filtered']:,} files. Every measurement is a "
        f"whole process; medians of {result['repeats']} interleaved rounds on {result['processors']} processors, "
        f"which other work shared: {result['load']:.1f} processes were running when it ended. "
        "Processor time says more then.",
        "",
        "| process | wall s | processor s |\n|---|---:|---:|",
        *(f"| {n} | {s:.2f} | {result['cpu_seconds'][n]:.2f} |" for n, s in result["seconds"].items()),
        "",
        "| aim | at most | wall | processor | holds |\n|---|---:|---:|---:|---|",
        *(
            f"| {a['aim']} | {a['limit']}x | {a['ratio']:.2f}x | {a['cpu_ratio']:.2f}x "
            f"| {'yes' if a['holds'] else 'no'} |"
            for a in result["aims"]
        ),
        "",
        f"The scan on one process takes {fixed['ratio']:.2f}x the wall time and {fixed['cpu_ratio']:.2f}x the "
        f"processor time of a bare parse of all files with {', '.join(word.decode() for word in COMMON)}, "
        "a reference that does not move with the rules.",
        "",
        f"ruff {result['ruff']}; Python {result['versions']['python']}. Parsed are whole files; the scan "
        "leaves out parts of long ones.",
    ]
    return "\n".join(lines) + "\n"


def show(result: dict[str, Any]) -> None:
    """Print the numbers for a person."""
    print(f"{result['files']} files, {result['lines']} lines; {result['filtered']} files pass the prefilter of "
          f"{result['rules']} rules; medians of {result['repeats']} rounds")  # fmt: skip
    for name, seconds in result["seconds"].items():
        print(f"  {name:<26} {seconds:7.2f} s   processor {result['cpu_seconds'][name]:7.2f} s")
    for aim in result["aims"]:
        verdict = "holds" if aim["holds"] else "does NOT hold"
        print(f"  {aim['ratio']:5.2f}x (processor {aim['cpu_ratio']:.2f}x), aim at most {aim['limit']}x, "
              f"{verdict}: {aim['aim']}")  # fmt: skip
    fixed = result["reference"]
    print(f"  {fixed['ratio']:5.2f}x (processor {fixed['cpu_ratio']:.2f}x), for reference: scan on one process against "
          f"the {REFERENCE}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
