"""From the runs of a comparison to a verdict for each stage, whose a failure is, and the figures behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools import compare as comparing
from tools import knowledge
from tools.compare import CompareOutput, CompareRequest, Figures, Problem
from tools.diagnose import Cause
from tools.own_tests import TestsOutput, lost

COMPARED = ("forward", "gradients", "trains")
STAGES = (*COMPARED, "preserves")
# A low precision is never finer than float32: a program in float64 has none, and the one run would show no error.
_LOW_UNITS = ["low", "jitter-1", "jitter-2"]


class VerifyRun(BaseModel):
    """One of the runs; its recording and log stay in the scratch folder."""

    name: str
    tree: str
    outcome: str
    explanation: str
    duration: float = 0.0
    steps: int = 0
    device: dict[str, Any] | None = None
    losses: list[float] = []
    exception: dict[str, Any] | None = None
    log: str = ""
    recording: str = ""
    notes: list[dict[str, Any]] = Field(default=[], description="what could not be imitated or recorded")
    command: str = ""
    cause: Cause | None = Field(default=None, description="the known cause of its failure that the error itself says")

    @property
    def ended_well(self) -> bool:
        """Whether it came to its end or to its last step."""
        return self.outcome in {"completed", "stopped-at-steps"}

    @property
    def unimitated(self) -> list[str]:
        """Calls that the CPU could not stand in for, with the user's line."""
        return [
            str(note.get("message", "")) + (f" at {note['file']}:{note.get('line')}" if note.get("file") else "")
            for note in self.notes
        ]


class StageVerdict(BaseModel):
    """The verdict on one stage, and the figures behind it."""

    stage: str
    result: str = Field(description="pass, fail or not run")
    reason: str
    owner: str | None = None
    figures: dict[str, Figures] = Field(default={}, description="by comparison: float32, low precision, CPU")
    problems: list[Problem] = []


class Facts(BaseModel):
    """The runs that were made, by name."""

    model_config = ConfigDict(ignored_types=(cached_property,))

    device: str = "auto"
    runs: dict[str, VerifyRun] = {}
    tests_before: TestsOutput | None = None
    tests_after: TestsOutput | None = None

    def add(self, run: VerifyRun) -> None:
        """Takes in a run."""
        self.runs[run.name] = run

    def recording(self, name: str) -> Path:
        """Where a run's recording is."""
        return Path(self.runs[name].recording)

    def told_apart(self, one: str, other: str) -> str | None:
        """Where two runs stop being the same bit for bit; None when they never do."""
        return comparing.first_difference(self.recording(one), self.recording(other))

    @property
    def comparable(self) -> bool:
        """Whether the reference gave numbers to compare with."""
        return self.obstacle() is None

    def obstacle(self) -> str | None:
        """Why nothing can be compared, and what would supply it; None when something can."""
        run = self.runs["reference"]
        if run.unimitated:
            calls = "; ".join(run.unimitated[:3])
            return f"the CPU cannot stand in for CUDA in: {calls}. Give an entry whose path avoids it"
        if not run.ended_well:
            said = run.explanation.strip()
            return f"the original does not run on the CPU, so there are no numbers to compare with: {said}"
        if comparing.is_empty(self.recording("reference")):
            return "the original calls no module and asks for no gradient; give an entry that does"
        if "again" in self.runs and (where := self.told_apart("reference", "again")) is not None:
            return (
                f"two runs of the original on the CPU differ ({where}), so a difference would show nothing."
                " Seed what the program draws outside torch, numpy and random, and use one data loading order"
            )
        return None

    def migrated_agrees(self) -> bool:
        """Whether the migrated program computes on the CPU, in float32, what the original does."""
        return self.runs["migrated"].ended_well and not _Comparisons(self).cpu.problems

    def compared(
        self, units: list[str], candidate: str, precision: Literal["float32", "low"], strict: bool, device: str | None
    ) -> CompareOutput:
        """Compares a run with the reference."""
        known = [self.recording(name) for name in units if name in self.runs and self.runs[name].ended_well]
        return comparing.compare(
            CompareRequest(
                reference=self.recording("reference"), units=known, candidate=self.recording(candidate),
                precision=precision, strict=strict, device=device,
            )
        )  # fmt: skip


class _Comparisons:
    """The comparisons that verdicts are made of, each made once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @cached_property
    def float32(self) -> CompareOutput:
        """Migrated program on the device, in float32."""
        kind = (self.facts.runs["device"].device or {}).get("kind")
        device = "tpu" if kind in ("hardware", "simulated") else None
        return self.facts.compared(["jitter-1", "jitter-2"], "device", "float32", True, device)

    @cached_property
    def low(self) -> CompareOutput:
        """Migrated program on the device, in its own precision."""
        return self.facts.compared(_LOW_UNITS, "device-low", "low", False, None)

    @cached_property
    def cpu(self) -> CompareOutput:
        """Migrated program on the CPU, in float32."""
        return self.facts.compared(["jitter-1", "jitter-2"], "migrated", "float32", True, None)

    @cached_property
    def cpu_low(self) -> CompareOutput:
        """Migrated program on the CPU, in its own precision, against the original in the same."""
        return self.facts.compared(_LOW_UNITS, "migrated-low", "low", False, None)


def float32_problems(facts: Facts) -> list[Problem] | None:
    """What differs on the device where both compute in float32; None where that was not compared."""
    run = facts.runs.get("device")
    if run is None or not run.ended_well or not facts.comparable:
        return None
    found = _Comparisons(facts).float32
    return found.problems if any(figures.compared for figures in found.figures.values()) else None


def judge(facts: Facts) -> dict[str, StageVerdict]:
    """The verdicts of all four stages."""
    obstacle = facts.obstacle()
    comparisons = _Comparisons(facts)
    if obstacle is not None:
        verdicts = {stage: StageVerdict(stage=stage, result="not run", reason=obstacle) for stage in STAGES}
    else:
        verdicts = {stage: _compared(stage, comparisons) for stage in COMPARED}
        verdicts["preserves"] = _computes_the_same(comparisons)
    return {**verdicts, "preserves": _with_tests(verdicts["preserves"], facts)}


def _with_tests(curve: StageVerdict, facts: Facts) -> StageVerdict:
    """The verdict on what the CPU computes, and the repository's own tests with it."""
    before, after = facts.tests_before, facts.tests_after
    if before is None or after is None:
        return curve.model_copy(update={"reason": f"{curve.reason}; the repository has no tests of its own"})
    if not before.outcomes:
        said = f"its own tests were not compared: {before.explanation}"
        return curve.model_copy(update={"reason": f"{curve.reason}; {said}"})
    gone = lost(before, after)
    if gone:
        first = gone[0]
        more = f", and {len(gone) - 1} more" if len(gone) > 1 else ""
        why = f": {after.explanation}" if after.explanation else ""
        said = f"the repository's own test {first.name} passed and {first.how}{more}{why} [{first.place}]"
        problems = [
            Problem(stage="preserves", kind="test", message=f"{one.name} passed and {one.how}", place=one.place)
            for one in gone
        ]
        changed = {"result": "fail", "owner": "code", "reason": said, "problems": [*problems, *curve.problems]}
        return curve.model_copy(update=changed)
    said = f"{before.count('passed')} of its own {len(before.outcomes)} tests pass before and after"
    return curve.model_copy(update={"reason": f"{curve.reason}; {said}"})


def _compared(stage: str, comparisons: _Comparisons) -> StageVerdict:
    facts = comparisons.facts
    run = facts.runs.get("device")
    if run is None:
        return StageVerdict(stage=stage, result="not run", reason="the program does not run on the device; see runs")
    if not run.ended_well:
        return _did_not_end(stage, run)
    figures = {"float32": comparisons.float32.figures[stage]}
    problems = comparisons.float32.of(stage)
    low = facts.runs.get("device-low")
    if low is not None and not low.ended_well:
        return _did_not_end(stage, low)
    if low is not None:
        figures["low precision"] = comparisons.low.figures[stage]
        problems += comparisons.low.of(stage)
    if _nothing_shown(problems):
        return StageVerdict(
            stage=stage, result="not run", reason=problems[0].message, figures=figures, problems=problems
        )
    if problems:
        differing_first = sorted(problems, key=lambda problem: problem.kind == "degenerate")
        return _failed(stage, differing_first, figures, comparisons)
    if not figures["float32"].compared:
        return StageVerdict(stage=stage, result="not run", reason=_NOTHING[stage], figures=figures)
    if (run.device or {}).get("kind") == "cpu":
        said = "it agrees with the original, but ran on the CPU, which says nothing about a TPU"
        return StageVerdict(stage=stage, result="not run", reason=said, figures=figures)
    return StageVerdict(stage=stage, result="pass", reason=_agreement(stage, figures), figures=figures)


def _nothing_shown(problems: Sequence[Problem]) -> bool:
    """Whether nothing differs and the only trouble is that what agrees is constant, so that agreeing says nothing."""
    return bool(problems) and all(problem.kind == "degenerate" for problem in problems)


_NOTHING = {
    "forward": "no module is called during the steps that were recorded",
    "gradients": "the entry asks for no gradient",
    "trains": "the entry makes no optimizer step; give one that trains",
}
_WHAT = {"forward": "module inputs and outputs", "gradients": "gradients", "trains": "losses, norms and states"}


def _agreement(stage: str, figures: dict[str, Figures]) -> str:
    parts = [f"{name} {_short(one.worst)} ({one.worst_at})" for name, one in figures.items() if one.compared]
    return f"{figures['float32'].compared} {_WHAT[stage]} agree; largest error ratio {', '.join(parts)}"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _did_not_end(stage: str, run: VerifyRun) -> StageVerdict:
    exception = run.exception or {}
    simulator = "SimulatorLimit" in str(exception.get("type", "")) or exception.get("owner") == "simulator"
    if simulator or run.outcome == "not-started":
        owner = "simulator" if simulator else "environment"
        return StageVerdict(stage=stage, result="not run", reason=run.explanation, owner=owner)
    place = _where(exception)
    said = f"the migrated program does not come to its end on the device: {run.explanation}"
    problems = [Problem(stage=stage, kind="exception", message=run.explanation, place=place)]
    if run.recording and (host := comparing.left_on_cpu(Path(run.recording))) is not None:
        said += f" ({host[0]})"
        problems.insert(0, Problem(stage=stage, kind="device", message=host[0], place=host[1]))
    elif run.cause is not None and run.cause.owner is knowledge.Blame.BACKEND:
        said += f" (known: {run.cause.entry}; see torchtpu-agent knowledge show {run.cause.entry})"
        return StageVerdict(stage=stage, result="fail", reason=said, owner="backend", problems=problems)
    return StageVerdict(stage=stage, result="fail", reason=said, owner="code", problems=problems)


def _where(exception: dict[str, Any]) -> str:
    frames = exception.get("frames") or []
    return f"{frames[-1].get('file')}:{frames[-1].get('line')}" if frames else ""


def _failed(
    stage: str, problems: list[Problem], figures: dict[str, Figures], comparisons: _Comparisons
) -> StageVerdict:
    first = problems[0]
    owner = _owner(first, comparisons)
    said = first.message + (f" [{first.place}]" if first.place and first.place not in first.message else "")
    if owner == "backend":
        said += "; on the CPU the migrated program agrees with the original, so it arises on the device"
        known = _known(first.message)
        if known is not None:
            said += f" (known: {known}; see torchtpu-agent knowledge show {known})"
        elif (comparisons.facts.runs["device"].device or {}).get("kind") == "simulated":
            said += " (TorchTPU and its simulation are not told apart)"
    return StageVerdict(stage=stage, result="fail", reason=said, owner=owner, figures=figures, problems=problems)


def _known(message: str) -> str | None:
    """The entry of the knowledge that says a fault of the backend looks like this."""
    for entry in knowledge.entries():
        patterns = [symptom.output for symptom in entry.symptoms if set(symptom.places()) == {"output"}]
        if entry.owner is knowledge.Blame.BACKEND and any(re.search(pattern or "", message) for pattern in patterns):
            return entry.id
    return None


def _owner(problem: Problem, comparisons: _Comparisons) -> str:
    """The migration's where the migrated program is off on the CPU too, or in what the backend has no part in."""
    if problem.kind in ("device", "degenerate", "schedule", "data", "scaling"):
        return "code"
    migrated = comparisons.facts.runs.get("migrated")
    if migrated is None or not migrated.ended_well or comparisons.cpu.problems:
        return "code"
    return "backend"


def _computes_the_same(comparisons: _Comparisons) -> StageVerdict:
    facts = comparisons.facts
    parts: list[str] = []
    figures: dict[str, Figures] = {}
    for name, own, reference, comparison in (
        ("float32", "migrated", "reference", "cpu"),
        ("own precision", "migrated-low", "low", "cpu_low"),
    ):
        run, original = facts.runs.get(own), facts.runs.get(reference)
        if run is None or original is None or not original.ended_well:
            continue
        if not run.ended_well:
            return _no_longer_runs(run, facts)
        found: CompareOutput = getattr(comparisons, comparison)
        figures |= {f"{name}, {stage}": one for stage, one in found.figures.items()}
        if _nothing_shown(found.problems):
            said = f"in {name} on the CPU nothing differs, but {found.problems[0].message}"
            return StageVerdict(
                stage="preserves", result="not run", reason=said, figures=figures, problems=found.problems
            )
        if found.problems:
            return _changed(name, found, figures)
        where = facts.told_apart(reference, own)
        parts.append(f"in {name} bit for bit" if where is None else f"in {name} within rounding ({where} differs)")
    if not parts:
        return StageVerdict(stage="preserves", result="not run", reason="no run on the CPU could be compared")
    said = f"on the CPU the migrated program computes what the original does, {' and '.join(parts)}"
    return StageVerdict(stage="preserves", result="pass", reason=said, figures=figures)


def _no_longer_runs(run: VerifyRun, facts: Facts) -> StageVerdict:
    if run.unimitated:
        said = f"the CPU cannot stand in for CUDA in the migrated program: {'; '.join(run.unimitated[:3])}"
        return StageVerdict(stage="preserves", result="not run", reason=said)
    problem = Problem(stage="preserves", kind="exception", message=run.explanation, place=_where(run.exception or {}))
    said = f"the original runs with CUDA imitated on the CPU, the migrated program does not: {run.explanation}"
    before = _before_its_end(run, facts)
    if before:
        said += f". Before that, {before[0].message}"
    problems = [problem, *before]
    return StageVerdict(stage="preserves", result="fail", reason=said, owner="code", problems=problems)


def _before_its_end(run: VerifyRun, facts: Facts) -> list[Problem]:
    """What a run that did not come to its end computed otherwise until then; what it did not come to is no matter."""
    if run.name != "migrated" or not run.recording:
        return []
    found = facts.compared(["jitter-1", "jitter-2"], run.name, "float32", True, None)
    return [one for one in found.of("forward") if one.kind in ("error", "data", "weights")][:1]


def _changed(name: str, found: CompareOutput, figures: dict[str, Figures]) -> StageVerdict:
    first = found.problems[0]
    said = f"in {name} on the CPU the migrated program computes something else: {first.message}"
    said += f" [{first.place}]" if first.place and first.place not in said else ""
    return StageVerdict(
        stage="preserves", result="fail", reason=said, owner="code", figures=figures, problems=found.problems
    )
