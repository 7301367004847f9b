"""`python -m evals.ecosystem.proof`: compare every migrated project with its original, and publish the error ratios."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from evals import results
from evals.ecosystem import checkout
from evals.ecosystem.further import FURTHER
from evals.ecosystem.projects import PROJECTS, Project
from evals.ecosystem.record import Judged
from evals.mutants import forked
from tools import commands
from tools.patch import patch_steps
from tools.verify import VerifyRequest, verify
from torchtpu.proof.recording import read_folder

OUT = Path(__file__).resolve().parents[2] / "out" / "proof"
NAME = "ecosystem_proof"
STAGES = ("forward", "gradients", "trains", "preserves")
READ = Path(__file__).with_name("read.toml")
STEPS = 20
ALL = [*PROJECTS, *FURTHER]


class Compared(Judged):
    """What the comparison of one project came to.

    Attributes:
        seconds: Wall time of `torchtpu-agent verify`.
        verdicts: Result, owner and reason of each stage.
        figures: By stage, then by comparison (float32, low precision, CPU).
        runs: Steps, outcome, first and last loss of each run.
        fault: Why there is no result, if there is none.
    """

    seconds: float = 0.0
    verdicts: dict[str, tuple[str, str | None, str]] = {}
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    runs: dict[str, dict[str, Any]] = {}
    fault: str = ""

    def take(self, answer: dict[str, Any]) -> None:
        """Fill in what the JSON answer of `verify` says."""
        for verdict in answer["stages"]:
            self.verdicts[verdict["stage"]] = (verdict["result"], verdict["owner"], verdict["reason"])
        entry = answer["entries"][0]
        self.figures = {name: stage["figures"] for name, stage in entry["stages"].items()}
        for run in entry["runs"]:
            losses = run["losses"]
            self.runs[run["name"]] = {
                "outcome": run["outcome"], "steps": run["steps"], "seconds": round(run["duration"], 1),
                "losses": losses[:1] + losses[-1:], "device": (run["device"] or {}).get("name", ""),
            }  # fmt: skip


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m evals.ecosystem.proof", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="PROJECT", help=f"of: {', '.join(p.name for p in ALL)}")
    parser.add_argument("--source-dir", type=Path, help="folder with checkouts by name; default: clone from GitHub")
    parser.add_argument("--wide-python", type=Path, help="interpreter of programs that need more packages")
    parser.add_argument("--steps", type=int, default=STEPS, help="optimizer steps of each run (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for trees and recordings (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=1800, help="seconds for one run (default: %(default)s)")
    parser.add_argument(
        "--forked", action="store_true", help="runs on the CPU in forks of this process, unsupervised: start-up once"
    )
    parser.add_argument("--publish", action="store_true", help="put the results into evals/results too")
    return parser.parse_args()


def main() -> int:
    """Return 0 if no stage of any chosen project fails or is not run."""
    args = arguments()
    records = []
    for project in (p for p in ALL if not args.only or p.name in args.only):
        record = study(project, args)
        print(f"{project.name:<26} {_in_short(record)}  {record.seconds:.0f} s", flush=True)
        records.append(record)
        if args.publish:
            publish(records)
    return int(any(record.fault or any(v[0] != "pass" for v in record.verdicts.values()) for record in records))


def study(project: Project, args: argparse.Namespace) -> Compared:
    """Fix one project as `migrate` does and compare; a fault is recorded, and the next project goes on."""
    record = Compared(
        name=project.name, repository=project.repository, commit=project.commit,
        entry=project.proof_entry or project.entry, reduced=project.proof_reduced or project.reduced,
    )  # fmt: skip
    python = args.wide_python if project.needs and args.wide_python else Path(sys.executable)
    record.date, record.revision, record.versions = results.today(), results.revision(), results.versions(python)
    record.revision += ", runs on the CPU in forks" if args.forked else ""
    place = args.out / time.strftime("%H%M%S") / project.name
    place.mkdir(parents=True)
    start = time.monotonic()
    try:
        source = checkout.make(project, place / "original", args.source_dir)
        migrated = Path(shutil.copytree(source, place / "migrated", symlinks=True))
        for _ in patch_steps(migrated / project.folder):
            pass
        made = _verify_forked if args.forked else _verify
        record.take(made(record.entry, project.folder, python, args, place))
    except (subprocess.SubprocessError, OSError, RuntimeError, ValueError) as error:
        record.fault = f"{type(error).__name__}: {error}"
    record.seconds = time.monotonic() - start
    return record


def _verify(entry: str, folder: str, python: Path, args: argparse.Namespace, place: Path) -> dict[str, Any]:
    command = [
        sys.executable, "-m", "agents.cli", "verify", str(place / "original"), str(place / "migrated"),
        "--scope", folder, "--entry", entry, "--json",
        "--verify-steps", str(args.steps), "--timeout", str(args.time_limit), "--python", str(python),
    ]  # fmt: skip
    environment = {**os.environ, "TORCHTPU_HOME": str(place / "home")}
    with (place / "stderr.log").open("w") as log:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, check=False)
    (place / "answer.json").write_text(done.stdout)
    answer: dict[str, Any] = json.loads(done.stdout)
    if "stages" not in answer:
        raise ValueError(done.stdout[-500:])
    return answer


def _verify_forked(entry: str, folder: str, python: Path, args: argparse.Namespace, place: Path) -> dict[str, Any]:
    output = verify(
        VerifyRequest(
            command=commands.parse(entry), original=place / "original", migrated=place / "migrated", scope=folder,
            scratch=place / "scratch", device="simulated", steps=args.steps, timeout=args.time_limit, python=python,
        ),
        run=forked.run,
    )  # fmt: skip
    for made in output.runs:
        made.losses = made.losses or _losses(Path(made.recording))
    answer = output.model_dump(mode="json")
    return {"stages": list(answer["stages"].values()), "entries": [answer]}


def _losses(recording: Path) -> list[float]:
    """The losses of a run that sent none while it ran."""
    return [loss.value for one in read_folder(recording).values() for loss in one.losses if loss.value is not None]


def publish(records: list[Compared]) -> None:
    """Put the records in the place of older ones of the same projects."""
    known = {old["name"]: Compared.model_validate(old) for old in results.read(NAME)}
    for record in records:
        known[record.name] = Compared.model_validate(results.without_places(record.model_dump(mode="json")))
    ordered = [known[project.name] for project in ALL if project.name in known]
    results.publish(NAME, [record.model_dump(mode="json") for record in ordered], page(ordered))


def page(records: list[Compared]) -> str:
    """The verdicts and error ratios of all projects, and what each was run with."""
    seen = tomllib.loads(READ.read_text(encoding="utf-8"))
    read = {r.name: seen[r.name] for r in records if r.name in seen}
    over = sum(one["over_claim"] for one in read.values())
    whole = sum(not r.fault and all(r.verdicts.get(s, ("",))[0] == "pass" for s in STAGES) for r in records)
    lines = [
        "# Public repositories compared with their originals",
        "",
        f"<!-- Made by `make proof` from {NAME}.json. -->",
        "",
        f"{whole} of {len(records)} pass forward, gradients, trains and preserves. Each original runs on the CPU with "
        "CUDA imitated, each migrated tree on the simulated device, from the same seed, batches and random draws. "
        "In brackets the largest error ratio in float32 and in the program's own precision: the error beside what "
        "rounding alone does to the original.",
        "",
        f"Read by hand (diff, recordings, what moved, what the losses mean, where it ran): {len(read)} of them, "
        f"with {over} over-claims. Each row's commit stands below.",
        "",
        "| program | steps | forward | gradients | trains | preserves | original's loss | on the device | time, s |",
        "|---|--:|---|---|---|---|---|---|--:|",
    ]
    lines += [_row(record) for record in records]
    lines += ["", "## What does not pass", ""]
    rest = [
        f"- {record.name}, {stage}: {result}{f' (owner: {owner})' if owner else ''}, {reason}"
        for record in records
        for stage, (result, owner, reason) in record.verdicts.items()
        if result != "pass"
    ]
    rest += [f"- {record.name}: {record.fault}" for record in records if record.fault]
    lines += rest or ["Nothing."]
    lines += ["", "## Read by hand", "", "| program | over-claim | seen |", "|---|---|---|"]
    lines += [f"| {name} | {'**yes**' if one['over_claim'] else 'no'} | {one['said']} |" for name, one in read.items()]
    lines += ["", "## What each was run with", ""]
    for record in records:
        versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        lines += [
            f"### {record.name}", "",
            f"{record.repository} at `{record.commit[:12]}`, {record.date}, by revision `{record.revision}`; "
            f"{versions}.",
            *([f"Made smaller: {record.reduced}."] if record.reduced else []),
            "", "```sh", record.entry, "```", "",
        ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _row(record: Compared) -> str:
    reference, device = record.runs.get("reference", {}), record.runs.get("device", {})
    cells = [record.name, str(device.get("steps", "-"))]
    for stage in STAGES:
        ratios = [
            each["worst"] if isinstance(each["worst"], str) else f"{each['worst']:.3g}"
            for each in record.figures.get(stage, {}).values()
            if each["compared"]
        ]
        result = record.verdicts.get(stage, ("-",))[0]
        cells.append(f"{result} ({', '.join(ratios)})" if ratios else result)
    cells += [" to ".join(f"{loss:.6g}" for loss in run.get("losses", [])) or "-" for run in (reference, device)]
    return "| " + " | ".join([*cells, f"{record.seconds:.0f}"]) + " |"


def _in_short(record: Compared) -> str:
    return record.fault or " ".join(f"{stage} {verdict[0]}" for stage, verdict in record.verdicts.items())


if __name__ == "__main__":
    sys.exit(main())
