"""What was found for one project, and the summary of all of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

STAGES = ("parses", "clean", "runs")


class Record(BaseModel):
    """The result of one project.

    Attributes:
        name: The project.
        repository: `owner/name`.
        commit: The pinned commit.
        entry: The command that was given.
        reduced: What was smaller than in the original.
        exit_code: Of `torchtpu-agent migrate`.
        seconds: Wall time of `migrate`.
        stages: Verdict and reason of the first stages.
        findings: Counts by grade.
        steps: Optimizer steps, and those on the device.
        losses: First and last loss of the run.
        cpu_original: How the original ended on the CPU with its old options ("ok", "exit 1", "stopped" at the limit).
        cpu_migrated: How the migrated tree ended with the same command.
        cpu_same: Whether both printed the same losses; None where nothing could be compared.
        cpu_compared: How many numbers were compared.
        refused_calls: Uses of `torch.tpu` names that raise.
        our_imports: Imports of this project.
        second_migration: Rules that would change the result again.
        checkout_unchanged: Whether files, index, HEAD and configuration of the checkout stayed.
        fault: Why there is no result, if there is none.
        tail: The end of the output, where something failed.
    """

    name: str
    repository: str
    commit: str
    entry: str
    reduced: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    device: str = ""
    stages: dict[str, tuple[str, str]] = {}
    findings: dict[str, int] = {}
    steps: tuple[int, int] = (0, 0)
    losses: tuple[float, ...] = ()
    cpu_original: str = "not run"
    cpu_migrated: str = "not run"
    cpu_same: bool | None = None
    cpu_compared: int = 0
    refused_calls: list[str] = []
    our_imports: list[str] = []
    second_migration: list[str] = []
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
        self.stages = {v["stage"]: (v["result"], v.get("reason") or "") for v in report.get("verdicts", [])}
        for run in (report.get("runs") or [])[-1:]:
            self.steps = (run.get("steps") or 0, run.get("device_steps") or 0)
            self.losses = tuple((run.get("losses") or [])[:1] + (run.get("losses") or [])[-1:])


def markdown(records: list[Record], versions: str) -> str:
    """A table of all projects and a list of what failed."""
    passed = sum(record.runs for record in records)
    lines = [
        "# Migrations of public repositories",
        "",
        f"{passed} of {len(records)} reach `runs: pass`. {versions}",
        "",
        "| program | findings safe/unsafe/advice | parses | clean | runs | steps on device | loss | migrate, s "
        "| CPU before / after | same numbers | again | checkout |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(record) for record in records]
    lines += ["", "## What was made smaller", ""]
    lines += [f"- {r.name}: {r.reduced}" for r in records if r.reduced]
    failures = [line for record in records for line in _failures(record)]
    return "\n".join([*lines, "", "## What does not hold", "", *(failures or ["Nothing."]), ""])


def _row(r: Record) -> str:
    same = "-" if r.cpu_same is None else f"{'yes' if r.cpu_same else 'no'} ({r.cpu_compared})"
    cells = [
        r.name,
        "/".join(str(r.findings.get(g, "-")) for g in ("safe", "unsafe", "advice")),
        *(r.stages.get(stage, ("-", ""))[0] for stage in STAGES),
        f"{r.steps[1]} of {r.steps[0]}",
        " to ".join(f"{loss:.3f}" for loss in r.losses) or "-",
        f"{r.seconds:.0f}",
        f"{r.cpu_original} / {r.cpu_migrated}",
        same,
        "no change" if not r.second_migration else ", ".join(r.second_migration),
        {True: "unchanged", False: "CHANGED", None: "-"}[r.checkout_unchanged],
    ]
    return "| " + " | ".join(cells) + " |"


def _failures(r: Record) -> list[str]:
    found = [f"- {r.name}, {stage}: {reason}" for stage, (verdict, reason) in r.stages.items() if verdict == "fail"]
    found += [f"- {r.name}: {r.fault}"] if r.fault else []
    found += [f"- {r.name}: uses {call}" for call in r.refused_calls]
    found += [f"- {r.name}: imports {name}" for name in r.our_imports]
    return found
