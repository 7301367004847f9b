"""The published figures of conformance runs, and the page made from them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from evals import results
from evals.conformance import expectations

COMMAND = "make conformance"
VERDICTS = ("match", "mismatch", "exception", "reference-exception", "death", "hang")


class Run(BaseModel):
    """One whole run of a suite in a mode.

    Attributes:
        suite: The suite.
        mode: How the device executed.
        numerics: Matrix numerics of the device.
        date: When it ran.
        revision: The commit of this project.
        versions: Packages it ran with.
        device: Name of the device.
        seconds: Wall time.
        matches: Largest relative error of every case that matches.
        vacuous: Of those, the ones whose result is constant or empty and so shows only that they run.
        others: Verdict and reason of every other case.
    """

    suite: str
    mode: str
    numerics: str
    date: str
    revision: str
    versions: dict[str, str]
    device: str
    seconds: float
    matches: dict[str, float]
    vacuous: list[str]
    others: dict[str, tuple[str, str]]

    @property
    def total(self) -> int:
        """Number of cases."""
        return len(self.matches) + len(self.others)

    def count(self, verdict: str) -> int:
        """Number of cases with a verdict."""
        if verdict == "match":
            return len(self.matches)
        return sum(found == verdict for found, _ in self.others.values())


def take(lines: list[dict[str, Any]], **about: Any) -> Run:
    """Makes the record of a run from the results of its cases."""
    matches = {line["case"]: float(f"{line['relative']:.2e}") for line in lines if line["verdict"] == "match"}
    others = {
        line["case"]: (line["verdict"], results.without_places(_reason(line)))
        for line in lines
        if line["verdict"] != "match"
    }
    vacuous = [line["case"] for line in lines if line["verdict"] == "match" and line.get("vacuous")]
    return Run(matches=matches, others=others, vacuous=vacuous, **about)


def _reason(line: dict[str, Any]) -> str:
    detail = next(iter(line.get("detail", "").splitlines()), "")[:200]
    error = f"relative error {line['relative']:.1e}" if "relative" in line else ""
    return ", ".join(part for part in (detail, error) if part)


def publish(run: Run) -> None:
    """Puts a run in the place of an older one of the same suite and mode."""
    known = {(old.suite, old.mode): old for old in map(Run.model_validate, results.read("conformance"))}
    known[run.suite, run.mode] = run
    runs = [known[key] for key in expectations.MINIMUM if key in known]
    results.publish("conformance", [one.model_dump(mode="json") for one in runs], page(runs))


def page(runs: list[Run]) -> str:
    """A table of all runs and a list of every case that does not match."""
    lines = [
        "# Conformance of the simulated device",
        "",
        f"<!-- Made by `{COMMAND}` from conformance.json. -->",
        "",
        "Each case runs on the CPU and on the device with the same weights and data; it matches when no tensor is off "
        "by more than 1e-3 of the reference's largest value. A vacuous match is one of a constant or empty result.",
        "",
        "| suite | mode | cases | match | required | of them vacuous | largest error | "
        + " | ".join(VERDICTS[1:])
        + " | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(run) for run in runs]
    lines += ["", "## Conditions", ""]
    lines += [
        f"- {run.suite}, {run.mode}: {run.date}, revision `{run.revision}`, {run.device}, {run.numerics} matrices; "
        + ", ".join(f"{name} {version}" for name, version in run.versions.items())
        for run in runs
    ]
    for run in runs:
        if run.others:
            lines += ["", f"## {run.suite}, {run.mode}: what does not match", ""]
            lines += [f"- {case}: {verdict}; {reason}" for case, (verdict, reason) in run.others.items()]
    return "\n".join(lines) + "\n"


def _row(run: Run) -> str:
    largest = max(run.matches.values(), default=0.0)
    required = expectations.MINIMUM[run.suite, run.mode]
    cells = [run.suite, run.mode, run.total, run.count("match"), required, len(run.vacuous), f"{largest:.1e}"]
    cells += [run.count(verdict) for verdict in VERDICTS[1:]] + [f"{run.seconds:.0f}"]
    return "| " + " | ".join(map(str, cells)) + " |"
