"""Command line of the conformance run: `python -m evals.conformance cases --mode eager`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from evals import results
from evals.conformance import expectations, published, suites, supervisor


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.conformance", description=__doc__)
    parser.add_argument("suite", choices=suites.NAMES)
    parser.add_argument("pattern", nargs="*", help="only cases that match one of these")
    parser.add_argument("--mode", choices=("eager", "fuse", "compile"), default="eager")
    parser.add_argument("--json", action="store_true", help="one JSON line a result")
    parser.add_argument("--output", type=Path, help="also append the JSON lines to this file")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a case may take")
    parser.add_argument("--numerics", choices=("float32", "tpu"), default="float32")
    parser.add_argument("--publish", action="store_true", help="put a whole run's figures into the published results")
    return parser.parse_args()


def _text(line: dict[str, Any]) -> str:
    error = f"{line['relative']:.1e}" if "relative" in line else ""
    detail = line.get("detail", "").splitlines()
    return f"{line['verdict']:10} {line['case']:45} {error:8} {detail[0][:150] if detail else ''}"


def main() -> int:
    """Runs a suite and returns 1 when it falls short of what is expected."""
    arguments = _arguments()
    # Only the children need the device.
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    names = suites.names(arguments.suite, arguments.mode)
    total = len(names)
    if arguments.pattern:
        names = [n for n in names if any(re.search(p, n) for p in arguments.pattern)]
    start = time.monotonic()

    def report(line: dict[str, Any]) -> None:
        text = json.dumps({"suite": arguments.suite, "mode": arguments.mode, **line})
        print(text if arguments.json else _text(line), flush=True)
        if arguments.output is not None:
            with arguments.output.open("a") as file:
                file.write(text + "\n")

    found = supervisor.run(
        arguments.suite,
        arguments.mode,
        names,
        limit=arguments.limit,
        environ={"TORCHTPU_NUMERICS": arguments.numerics},
        report=report,
    )
    reasons = expectations.shortfalls(arguments.suite, arguments.mode, found, total)
    summary = {
        "suite": arguments.suite,
        "mode": arguments.mode,
        "counts": expectations.counts(found),
        "seconds": round(time.monotonic() - start, 1),
        "shortfalls": reasons,
    }
    print(json.dumps({"summary": summary}) if arguments.json else f"{summary}", flush=True)
    if arguments.publish and len(found) == total:
        published.publish(_record(arguments, found, summary["seconds"]))
    return 1 if reasons else 0


def _record(arguments: argparse.Namespace, found: list[dict[str, Any]], seconds: float) -> published.Run:
    from torchtpu import device

    return published.take(
        found,
        suite=arguments.suite,
        mode=arguments.mode,
        numerics=arguments.numerics,
        date=results.today(),
        revision=results.revision(),
        versions=results.versions(Path(sys.executable)),
        device=device.choose().name,
        seconds=seconds,
    )


if __name__ == "__main__":
    sys.exit(main())
