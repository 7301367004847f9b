"""`python -m evals.ecosystem`: migrate every project of the table, check the results, write a summary."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from evals import results
from evals.ecosystem import checkout, checks
from evals.ecosystem.projects import PROJECTS, Project
from evals.ecosystem.record import Record, page

OUT = Path(__file__).resolve().parents[2] / "out" / "ecosystem"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m evals.ecosystem", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="PROJECT", help=f"of: {', '.join(p.name for p in PROJECTS)}")
    parser.add_argument("--source-dir", type=Path, help="folder with checkouts by name; default: clone from GitHub")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter of the programs")
    parser.add_argument(
        "--wide-python", type=Path, help="interpreter of those that need more packages; default: --python"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for checkouts and results (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=900, help="seconds for one run (default: %(default)s)")
    parser.add_argument(
        "--cpu-limit",
        type=float,
        default=180,
        help="seconds for a run on the CPU; what is stopped is compared as far as it came (default: %(default)s)",
    )
    parser.add_argument(
        "--publish", action="store_true", help=f"put the results into {results.FOLDER.relative_to(results.ROOT)} too"
    )
    return parser.parse_args()


def main() -> int:
    """Return 0 if everything holds for every chosen project."""
    args = arguments()
    chosen = [p for p in PROJECTS if not args.only or p.name in args.only]
    records = []
    for project in chosen:
        record = study(project, args)
        (args.out / f"{project.name}.json").write_text(record.model_dump_json(indent=1) + "\n")
        print(f"{project.name:<26} runs {record.stages.get('runs', ('-', ''))[0]}  {record.seconds:.0f} s", flush=True)
        records.append(record)
    if args.publish:
        publish(records)
    (args.out / "summary.md").write_text(page(records))
    return int(any(record.shortfalls() for record in records))


def publish(records: list[Record]) -> None:
    """Put the records in the place of older ones of the same projects."""
    known = {old["name"]: Record.model_validate(old) for old in results.read("ecosystem")}
    for record in records:
        plain = results.without_places(record.model_dump(mode="json", exclude={"tail"}))
        known[record.name] = Record.model_validate(plain)
    ordered = [known[project.name] for project in PROJECTS if project.name in known]
    results.publish(
        "ecosystem", [record.model_dump(mode="json", exclude={"tail"}) for record in ordered], page(ordered)
    )


def study(project: Project, args: argparse.Namespace) -> Record:
    """Migrate one project and check the result; a fault is recorded, and the next project goes on."""
    record = Record(
        name=project.name, repository=project.repository, commit=project.commit, entry=project.entry,
        reduced=project.reduced,
    )  # fmt: skip
    python = args.wide_python if project.needs and args.wide_python else args.python
    record.date, record.revision, record.versions = results.today(), results.revision(), results.versions(python)
    place = args.out / time.strftime("%H%M%S") / project.name
    place.mkdir(parents=True)
    try:
        source = checkout.make(project, place / "checkout", args.source_dir)
        before = checkout.fingerprint(source)
        migrate(project, source, python, args.time_limit, record, place)
        record.checkout_unchanged = checkout.fingerprint(source) == before
        check(project, source, python, args.cpu_limit, record, place)
    except (subprocess.SubprocessError, OSError, RuntimeError) as error:
        record.fault = f"{type(error).__name__}: {error}"
    return record


def migrate(project: Project, source: Path, python: Path, time_limit: float, record: Record, place: Path) -> None:
    """Run the command as a user would, and keep its JSON report."""
    command = [
        sys.executable, "-m", "agents.cli", "migrate", str(source / project.folder), "--entry", project.entry,
        "--steps", str(project.steps), "--timeout", str(time_limit), "--python", str(python), "--json",
    ]  # fmt: skip
    start = time.monotonic()
    with (place / "stderr.log").open("w") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=log, text=True, timeout=3 * time_limit,
            env={**os.environ, "TORCHTPU_HOME": str(place / "home")},
        )  # fmt: skip
    record.seconds = time.monotonic() - start
    record.exit_code = done.returncode
    (place / "report.json").write_text(done.stdout)
    try:
        record.take(json.loads(done.stdout))
    except ValueError:
        record.fault = f"no report (exit {done.returncode})"
        record.tail = (done.stdout + (place / "stderr.log").read_text())[-2000:]


def check(project: Project, source: Path, python: Path, time_limit: float, record: Record, place: Path) -> None:
    """Look at the branch that the migration made, and run it on the CPU beside the original."""
    branches = subprocess.run(
        ["git", "-C", str(source), "branch", "--list", "--format=%(refname:short)", "torchtpu/*"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    if not branches:
        record.fault = record.fault or "no branch was made"
        return
    tree = place / "migrated"
    subprocess.run(["git", "clone", "--quiet", "--branch", branches[-1], str(source), str(tree)], check=True)
    record.tpu_names = checks.tpu_names(tree)
    record.our_imports = checks.our_imports(tree)
    if project.cpu_entry is not None:
        _compare_on_cpu(project, source, tree, python, time_limit, record)
    record.second_migration = checks.second_migration(tree / project.folder)


def _compare_on_cpu(
    project: Project, source: Path, tree: Path, python: Path, time_limit: float, record: Record
) -> None:
    original = tree.with_name("original")
    subprocess.run(["git", "clone", "--quiet", str(source), str(original)], check=True)
    ends, numbers = [], []
    for root in (original, tree):
        project.prepare(root)
        code, output = checks.run_on_cpu(project.cpu_entry or "", root / project.folder, python, time_limit)
        (root.with_suffix(".log")).write_text(output)
        ends.append("stopped" if code is None else "ok" if code == 0 else f"exit {code}")
        numbers.append(checks.measures(output))
        if code:
            record.tail += f"--- {root.name} on the CPU ---\n{output[-800:]}\n"
    record.cpu_original, record.cpu_migrated = ends
    # A program that was stopped at the limit was stopped at different places.
    whole = ends == ["ok", "ok"]
    record.cpu_compared = max(map(len, numbers)) if whole else min(map(len, numbers))
    if record.cpu_compared:
        record.cpu_same = numbers[0][: record.cpu_compared] == numbers[1][: record.cpu_compared]


if __name__ == "__main__":
    sys.exit(main())
