"""`python -m evals.corpus`: fetch pinned packages, apply the rules to each, and write a summary."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evals.corpus import review
from evals.corpus.packages import PACKAGES
from evals.corpus.study import Record, study
from evals.results import FOLDER, revision, today

_COLUMNS = (
    *("package", "version", "files", "lines", "safe", "unsafe", "advice", "per 1000 lines", "changed files"),
    *("own tests", "holds"),
)
_WORDS = frozenset({"package", "version", "own tests", "holds"})
_CAVEATS = (
    "",
    "How far these figures go: one reviewer, who also changed rules, judged each finding from its line and its fix,",
    "and took the rules' lists of missing operators as given. Rules were changed after faults seen in this sample and",
    "after lines missed in these files, so both shares are of what was tuned on and will be lower elsewhere. The lines",
    "were picked from a search for words, by somebody who had seen diffs of some of the files.",
)
OUT = Path(__file__).resolve().parents[2] / "out" / "corpus"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m evals.corpus", description=__doc__)
    parser.add_argument(
        "only", nargs="*", metavar="PACKAGE", help="some of the packages; others keep their last record"
    )
    parser.add_argument("--source-dir", type=Path, help="folder with wheels and with checkouts by name")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for files and records (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=600, help="seconds for the tests of one tree")
    parser.add_argument(
        "--summary", action="store_true", help="study nothing; make the summary of the records there are"
    )
    return parser.parse_args()


def main() -> int:
    """Return 0 if everything holds for every package that was studied."""
    args = arguments()
    records = args.out / "records"
    records.mkdir(parents=True, exist_ok=True)
    judged = revision()
    for package in PACKAGES if not args.summary else ():
        if not args.only or package.name in args.only:
            start = time.monotonic()
            try:
                record = study(package, args.out, args.source_dir, args.time_limit)
            except (subprocess.SubprocessError, OSError, RuntimeError) as error:
                record = Record(name=package.name, version=package.version, dropped=[f"not studied: {error}"])
            record.revision = judged
            (records / f"{package.name}.json").write_text(record.model_dump_json() + "\n", encoding="utf-8")
            print(
                f"{package.name:<30} {'holds' if record.holds else 'FAILS'}  {time.monotonic() - start:.0f} s",
                flush=True,
            )
    paths = [records / f"{package.name}.json" for package in PACKAGES]
    found = [Record.model_validate_json(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
    chosen = review.sample(found)
    said = review.verdicts()
    (args.out / "review.md").write_text(review.sheet(chosen, said), encoding="utf-8")
    publish(found, review.precision(chosen, said), review.recall(found, review.marks()))
    return int(not all(record.holds for record in found))


def publish(found: list[Record], precision: dict[str, dict[str, float]], recall: dict[str, object]) -> None:
    """Write the figures as JSON, and the page made from them."""
    packages = [record.model_dump(mode="json", exclude={"findings", "rewritten", "revision"}) for record in found]
    figures = {
        "date": today(),
        "revision": ", ".join(sorted({record.revision for record in found})),
        "precision": precision,
        "recall": recall,
        "packages": packages,
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "corpus.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (FOLDER / "corpus.md").write_text(page(found, figures), encoding="utf-8")


def page(found: list[Record], figures: Mapping[str, Any]) -> str:
    """The summary as Markdown."""
    holding = sum(record.holds for record in found)
    lines = [
        "# Rules on other people's packages",
        "",
        "<!-- Made by `make corpus` from the records of the run. -->",
        "",
        f"{figures['date']}, revision {figures['revision']}. For {holding} of {len(found)} packages every changed file "
        "compiles, a second pass changes nothing, no fix was dropped, and the package's own tests come out as before.",
        "",
        *_precision(figures["precision"]),
        _recall(figures["recall"]),
        *_CAVEATS,
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'|'.join('---' if name in _WORDS else '--:' for name in _COLUMNS)}|",
        *(_row(record) for record in found),
    ]
    faults = [
        f"- {r.name}: {fault}" for r in found for fault in (*r.broken, *r.dropped, *r.second_pass, *r.test_changes)
    ]
    return "\n".join([*lines, "", *faults]).rstrip() + "\n"


def _row(record: Record) -> str:
    grades = [record.grades.get(grade, 0) for grade in ("safe", "unsafe", "advice")]
    rate = f"{1000 * sum(grades) / record.lines:.2f}" if record.lines else "-"
    tests = ", ".join(f"{count} {outcome}" for outcome, count in sorted(record.tests.items())) or "none"
    cells = [record.name, record.version[:12], record.files, record.lines, *grades, rate, record.changed, tests,
             "yes" if record.holds else "no"]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def _precision(groups: dict[str, dict[str, float]]) -> list[str]:
    names = {"all": "findings", "safe": "findings with a safe fix"}
    said = []
    for group, figures in groups.items():
        reviewed = int(figures["reviewed"])
        share = f"{100 * figures['right'] / reviewed:.1f} %" if reviewed else "nothing"
        said.append(
            f"Of {figures['sampled']} sampled {names[group]} {reviewed} were reviewed and {share} judged right "
            f"({figures['wrong']} wrong, {figures['doubtful']} doubtful; 95 % interval "
            f"{100 * figures['low']:.1f} to {100 * figures['high']:.1f} %)."
        )
    return said


def _recall(figures: Mapping[str, Any]) -> str:
    marked, found = figures["marked"], figures["found"]
    missed = ", ".join(f"`{line}`" for line in figures["missed"])
    return (
        f"Of {marked} lines listed by hand as tied to CUDA, {found} have a finding or are replaced. Missed: {missed}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
