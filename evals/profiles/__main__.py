"""`python -m evals.profiles`: profiles known models for several TPUs, one compilation at a time."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
from pathlib import Path
from typing import Any

from agents.runs import home
from evals import results
from evals.profiles.models import MODELS, Model
from evals.profiles.page import page
from tools import profile as profiler
from tools.commands import parse

TARGETS = ("v5e", "v6e", "tpu7x-2")
_NAME = "profiles"


def _record(model: Model, target: str, folder: Path, state: Path, fresh: bool, quick: bool) -> dict[str, Any]:
    """Profile one model for one target."""
    copy = folder.parent / f"{folder.name}-work"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    request = profiler.ProfileRequest(
        command=parse(model.command), cwd=copy, original=folder, target=target, state=state, fresh=fresh, quick=quick
    )
    output = profiler.profile(request, lambda said: print(f"{model.name} {target}: {said}", flush=True))
    second = profiler.profile(request.model_copy(update={"fresh": False}))
    found = output.profile
    time, memory = found["time"] or {}, found["memory"]
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "model": model.name,
        "title": model.title,
        "target": target,
        "outcome": output.outcome,
        "message": found["message"][:400],
        **{name: time.get(name) for name in ("seconds", "low", "high", "mfu", "compiled_flops", "from_cycles")},
        "recorded_flops": time.get("model_flops"),
        "analytic_flops": model.flops,
        "convention": model.convention,
        "scheduled_only": found["scheduled_only"],
        "peak": memory["peak"],
        "limit": memory["limit"],
        "to_user_lines": (found["attribution"] or {}).get("to_user_lines"),
        "inferred": (found["attribution"] or {}).get("inferred"),
        "operators": found["step"]["operators"],
        "timing": output.timing.model_dump(),
        "cached": output.cached,
        "overhead": _overhead(output),
        "second_run": second.timing.whole,
        "compile_seconds": found["compile_seconds"],
        "host_memory": max(children, found["host_memory"]),
        "largest": [
            {key: row[key] for key in ("bytes", "shape", "op", "file", "line")} for row in memory["largest"][:5]
        ],
        "lines": [
            {"line": f"{row['file']}:{row['line']}", "seconds": row["seconds"], "bound": row["bound"]}
            for row in found["lines"][:5]
        ],
    }


def _with_times(record: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """A record from the cache keeps the times of the run that filled it, where that one is published."""
    same = before is not None and before.get("scheduled_only") == record["scheduled_only"]
    if before is None or not same or not record["cached"] or before["outcome"] != record["outcome"]:
        return record
    kept = {name: before[name] for name in ("timing", "cached", "overhead", "host_memory") if name in before}
    return record | kept


def _overhead(output: profiler.ProfileOutput) -> float | None:
    """The whole by its bare parts: recording, lowering, and the compiler's own call; None where some were cached."""
    timing = output.timing
    bare = timing.capture + timing.lowering + output.profile["compile_seconds"]
    return timing.whole / bare if not output.cached else None


def _about(state: Path) -> dict[str, Any]:
    import sys

    return {
        "date": results.today(),
        "revision": results.revision(),
        "versions": results.versions(Path(sys.executable)),
        "state": state.name,
    }


def main() -> None:
    """Profile what is asked for, print a line each, and publish when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=[model.name for model in MODELS])
    parser.add_argument("--target", action="append")
    parser.add_argument("--source-dir", type=Path, help="folder with checkouts by the repository's name")
    parser.add_argument("--state", type=Path, help="folder of the caches; default: the state directory's")
    parser.add_argument("--fresh", action="store_true", help="use nothing from the cache")
    parser.add_argument("--quick", action="store_true", help="stop the compiler before it generates code")
    parser.add_argument("--publish", action="store_true", help="write evals/results/profiles")
    args = parser.parse_args()
    state = args.state or home() / "profiles"
    records = {(one["model"], one["target"]): one for one in results.read(_NAME)}
    with tempfile.TemporaryDirectory() as scratch:
        for model in MODELS:
            if args.model and model.name not in args.model:
                continue
            folder = Path(scratch) / model.name
            model.lay_out(folder, args.source_dir)
            for target in args.target or TARGETS:
                record = _record(model, target, folder, state, args.fresh, args.quick) | _about(state)
                records[model.name, target] = _with_times(record, records.get((model.name, target)))
                print(json.dumps({k: v for k, v in record.items() if k not in ("versions", "largest", "lines")}))
                if args.publish:
                    kept = [results.without_places(one) for one in records.values()]
                    results.publish(_NAME, kept, page(kept))


if __name__ == "__main__":
    main()
