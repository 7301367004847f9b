"""What was found for one project, and the page about all of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

STAGES = ("parses", "clean", "runs")
COMMAND = "make ecosystem"


class Judged(BaseModel):
    """What was judged, when and by which code.

    Attributes:
        name: The project.
        repository: `owner/name`.
        commit: The pinned commit.
        entry: The command that was given.
        reduced: What was smaller than in the original.
        date: When it was judged.
        revision: The commit of this project.
        versions: Packages of the program's interpreter.
    """

    name: str
    repository: str
    commit: str
    entry: str
    reduced: str = ""
    date: str = ""
    revision: str = ""
    versions: dict[str, str] = {}


class Record(Judged):
    """The result of one project.

    Attributes:
        device: Name of the device it ran on.
        exit_code: Of `torchtpu-agent migrate`.
        seconds: Wall time of `migrate`.
        run_seconds: Wall time of the program on the device.
        outcome: How the program ended there.
        stages: Verdict and reason of the first stages.
        findings: Counts by grade.
        steps: Optimizer steps, and those on the device.
        device_ops: Programs the device was asked to run.
        losses: First and last loss of the run.
        cpu_original: How the original ended on the CPU with its old options ("ok", "exit 1", "stopped" at the limit).
        cpu_migrated: How the migrated tree ended with the same command.
        cpu_same: Whether both printed the same losses; None where nothing could be compared.
        cpu_compared: How many numbers were compared.
        tpu_names: Uses of `torch.tpu`.
        our_imports: Imports of this project.
        second_migration: Rules that would change the result again; None where that was not tried.
        checkout_unchanged: Whether files, index, HEAD and configuration of the checkout stayed.
        fault: Why there is no result, if there is none.
        tail: The end of the output, where something failed.
    """

    device: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    run_seconds: float = 0.0
    outcome: str = ""
    stages: dict[str, tuple[str, str]] = {}
    findings: dict[str, int] = {}
    steps: tuple[int, int] = (0, 0)
    device_ops: int | None = None
    losses: tuple[float, ...] = ()
    cpu_original: str = "not run"
    cpu_migrated: str = "not run"
    cpu_same: bool | None = None
    cpu_compared: int = 0
    tpu_names: list[str] = []
    our_imports: list[str] = []
    second_migration: list[str] | None = None
    checkout_unchanged: bool | None = None
    fault: str = ""
    tail: str = ""

    @property
    def runs(self) -> bool:
        """Whether the stage `runs` passed."""
        return self.stages.get("runs", ("", ""))[0] == "pass"

    def take(self, report: dict[str, Any]) -> None:
        """Fill in what the JSON report of `migrate` says."""
        assessment = report.get("assessment") or {}
        self.findings = {grade: assessment.get(grade, 0) for grade in ("safe", "unsafe", "advice")}
        self.stages = {
            v["stage"]: (v["result"], v.get("reason") or "") for v in report.get("verdicts", []) if v["stage"] in STAGES
        }
        for run in (report.get("runs") or [])[-1:]:
            self.steps = (run.get("steps") or 0, run.get("device_steps") or 0)
            self.device_ops = run.get("device_ops")
            losses = run.get("losses") or []
            self.losses = tuple(losses[:1] + losses[-1:])
            self.outcome = run.get("outcome") or ""
            self.run_seconds = run.get("duration") or 0.0
            self.device = (run.get("device") or {}).get("name", "")

    def shortfalls(self) -> list[str]:
        """Everything that must hold of a migration and does not, or was not shown."""
        found = [self.fault] if self.fault else []
        for stage in STAGES:
            verdict, reason = self.stages.get(stage, ("not run", ""))
            if verdict != "pass":
                found.append(f"{stage}: {verdict}" + (f" ({reason})" if reason else ""))
        found += [f"uses {name}" for name in self.tpu_names]
        found += [f"imports {name}" for name in self.our_imports]
        if self.second_migration != []:
            changed = ", ".join(self.second_migration or ["not tried"])
            found.append(f"a second migration: {changed}")
        if not self.checkout_unchanged:
            found.append("the checkout was changed" if self.checkout_unchanged is False else "checkout not looked at")
        # Some programs have no option to end soon: both are stopped, and compared as far as they came.
        if self.cpu_migrated not in ("ok", "stopped") or self.cpu_migrated != self.cpu_original:
            found.append(f"the migrated program on the CPU: {self.cpu_migrated} (the original: {self.cpu_original})")
        if not self.cpu_same:
            found.append("numbers on the CPU: " + ("not compared" if self.cpu_same is None else "they differ"))
        return found


def page(records: list[Record]) -> str:
    """A table of all projects, what each was run with, and what does not hold."""
    passed = sum(record.runs for record in records)
    whole = sum(not record.shortfalls() for record in records)
    lines = [
        "# Migrations of public repositories",
        "",
        f"<!-- Made by `{COMMAND}` from ecosystem.json. -->",
        "",
        f"{passed} of {len(records)} reach `runs: pass`; for {whole} everything in the table holds. Each repository is "
        "taken as it is at its pinned commit, with data made for it, migrated with `torchtpu-agent migrate` and run "
        "by its entry command. No file of it is edited by hand.",
        "",
        "| program | findings safe/unsafe/advice | parses | clean | runs | steps on the device | loss | migrate, s "
        "| of it the run, s | CPU before / after | same numbers | again | checkout |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(record) for record in records]
    lines += ["", "## What does not hold", ""]
    failures = [f"- {record.name}: {text}" for record in records for text in record.shortfalls()]
    lines += failures or ["Nothing."]
    lines += ["", "## What each was run with", ""]
    lines += [line for record in records for line in _conditions(record)]
    return "\n".join(lines) + "\n"


def _row(r: Record) -> str:
    same = "-" if r.cpu_same is None else f"{'yes' if r.cpu_same else 'no'} ({r.cpu_compared})"
    cells = [
        r.name,
        "/".join(str(r.findings.get(g, "-")) for g in ("safe", "unsafe", "advice")),
        *(r.stages.get(stage, ("-", ""))[0] for stage in STAGES),
        f"{r.steps[1]} of {r.steps[0]}" if r.steps[0] else f"no optimizer; {r.device_ops or 0} programs",
        " to ".join(f"{loss:.3f}" for loss in r.losses) or "-",
        f"{r.seconds:.0f}",
        f"{r.run_seconds:.0f}",
        f"{r.cpu_original} / {r.cpu_migrated}",
        same,
        "-" if r.second_migration is None else ", ".join(r.second_migration) or "no change",
        {True: "unchanged", False: "CHANGED", None: "-"}[r.checkout_unchanged],
    ]
    return "| " + " | ".join(cells) + " |"


def _conditions(r: Record) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in r.versions.items())
    return [
        f"### {r.name}",
        "",
        f"{r.repository} at `{r.commit[:12]}`, {r.date}, by revision `{r.revision}`; {versions}; {r.device or '-'}.",
        *([f"Made smaller: {r.reduced}."] if r.reduced else []),
        "",
        *(f"- {stage}: {verdict}, {reason}" for stage, (verdict, reason) in r.stages.items()),
        "",
        "```sh",
        r.entry,
        "```",
        "",
    ]
