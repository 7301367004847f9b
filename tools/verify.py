"""Runs an entry of two trees, the original and the migrated one, and says whether they compute the same.

The runs, each a supervised child in a fresh copy of its tree, all with the same seed and the same random draws:

| run | tree | where | precision |
|---|---|---|---|
| reference | original | CPU, `cuda` an alias of it | float32 |
| again | original | the same | the same; shows whether the program is deterministic |
| jitter-1 | original | the same, weights moved by one unit in the last place | float32; unit of error |
| jitter-2 | original | likewise, without oneDNN, and sums moved as another order would | float32; unit of error |
| low | original | the same | the program's own with bfloat16 for float16, TPU matrix numerics |
| migrated | migrated | CPU, `cuda` an alias of it | float32 |
| migrated-low | migrated | the same | as low |
| device | migrated | the device | float32 |
| device-low | migrated | the device | the program's own, TPU matrix numerics |
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tools import compare as comparing
from tools import judging, own_tests
from tools import run as runner
from tools.commands import Command
from tools.diagnose import Cause, Confidence, diagnose
from tools.judging import Facts, StageVerdict, VerifyRun
from torchtpu.proof.spec import Proof

SEED = 0
DETAILED = 2
TESTS_SECONDS = 300.0

Tell = Callable[[str], None]
Run = Callable[..., runner.RunOutput]


class VerifyRequest(BaseModel):
    """What to compare. Both folders are copied for every run and never written to."""

    command: Command
    original: Path
    migrated: Path
    scope: str = Field(default="", description="folder inside both trees that the command runs in")
    import_paths: list[str] = Field(default=[], description="folders of the trees put on PYTHONPATH")
    scratch: Path = Field(description="where runs, recordings and logs are kept; made when it is not there")
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: Path | None = None
    steps: int = 20
    timeout: float | None = None
    idle_timeout: float | None = None
    memory: int | None = None
    sandbox: bool = True
    reuse: Path | None = Field(default=None, description="scratch folder of an earlier comparison of the same original")
    tests: bool = Field(default=True, description="run the repository's own tests too")
    on_device: bool = Field(default=True, description="False where the program is known not to run on the device")


class VerifyOutput(BaseModel):
    """Runs, verdicts and figures of one entry."""

    entry: str
    runs: list[VerifyRun] = []
    stages: dict[str, StageVerdict] = {}
    tests: dict[str, own_tests.TestsOutput] = Field(default={}, description="the repository's own, by tree")

    def run(self, name: str) -> VerifyRun | None:
        """The run of that name."""
        return next((run for run in self.runs if run.name == name), None)


@dataclass(frozen=True)
class _Plan:
    name: str
    tree: Literal["original", "migrated"]
    proof: dict[str, Any]
    on_device: bool = False

    @property
    def numerics(self) -> Literal["float32", "tpu"]:
        return "tpu" if self.on_device and self.proof["precision"] == "own" else "float32"


def _cpu(name: str, tree: Literal["original", "migrated"], **proof: Any) -> _Plan:
    low = "precision" in proof
    return _Plan(name, tree, {"oracle": True, "precision": "float32", "numerics_on_cpu": low, **proof})


REFERENCE = _cpu("reference", "original")
AGAIN = _cpu("again", "original")
# A device adds up in an order of its own: long sums and those that cancel move more than a weight's last bit shows.
JITTERS = [_cpu("jitter-1", "original", jitter=1), _cpu("jitter-2", "original", jitter=2, other_kernels=True)]
# A TPU computes in bfloat16 what asks for float16: the unit of error must have as few bits.
LOW = _cpu("low", "original", precision="bfloat16")
MIGRATED = _cpu("migrated", "migrated")
MIGRATED_LOW = _cpu("migrated-low", "migrated", precision="bfloat16")
DEVICE = _Plan("device", "migrated", {"precision": "float32"}, on_device=True)
DEVICE_LOW = _Plan("device-low", "migrated", {"precision": "own"}, on_device=True)


def verify(request: VerifyRequest, tell: Tell = lambda _text: None, run: Run = runner.run) -> VerifyOutput:
    """Make the runs that are needed and judge the stages forward, gradients, trains and preserves.

    Args:
        request: What to compare.
        tell: Called with what is being done.
        run: Makes one run, as `tools.run.run` does.
    """
    work = _Work(request, tell, run)
    try:
        facts = _gather(work)
    finally:
        work.clean()
    stages = judging.judge(facts)
    tests = {"original": facts.tests_before, "migrated": facts.tests_after}
    return VerifyOutput(
        entry=request.command.text,
        runs=list(facts.runs.values()),
        stages=stages,
        tests={tree: one for tree, one in tests.items() if one is not None},
    )


def impossible(entry: str, reason: str) -> VerifyOutput:
    """The answer where no run could be made."""
    stages = {name: StageVerdict(stage=name, result="not run", reason=reason) for name in judging.STAGES}
    return VerifyOutput(entry=entry, stages=stages)


def _gather(work: _Work) -> Facts:
    facts = Facts(device=work.request.device)
    _compared_runs(work, facts)
    if work.request.tests and own_tests.has_tests(work.request.original):
        facts.tests_before, facts.tests_after = work.tests("original"), work.tests("migrated")
    return facts


def _compared_runs(work: _Work, facts: Facts) -> None:
    facts.add(work.run(REFERENCE))
    if not facts.comparable:
        return
    work.most_backwards = 2 * comparing.num_backwards(facts.recording("reference")) + 10
    facts.add(work.run(AGAIN))
    if not facts.comparable:
        return
    for plan in (*JITTERS, LOW, MIGRATED):
        facts.add(work.run(plan))
    # What is wrong in float32 is not looked at a second time.
    if facts.migrated_agrees():
        facts.add(work.run(MIGRATED_LOW))
    if work.request.on_device:
        facts.add(work.run(DEVICE))
        if facts.runs["device"].ended_well:
            facts.add(work.run(DEVICE_LOW))


class _Work:
    """Makes the runs of one request."""

    def __init__(self, request: VerifyRequest, tell: Tell, run: Run) -> None:
        self.request = request
        self._make_run = run
        self.most_backwards: int | None = None
        self._tell = tell
        # Every run has the same path, which programs print, hash and save.
        self._folder = request.scratch / "work"
        request.scratch.mkdir(parents=True, exist_ok=True)

    def recording(self, plan: _Plan) -> Path:
        """Where a run's recording is."""
        return self.request.scratch / plan.name

    def clean(self) -> None:
        """Removes the copy that the last run was made in."""
        _remove(self._folder)

    def run(self, plan: _Plan) -> VerifyRun:
        """Makes one run in a fresh copy of its tree, or takes it from an earlier comparison."""
        if plan.tree == "original" and (kept := self._kept(f"{plan.name}.json")) is not None:
            return VerifyRun.model_validate_json(kept)
        made = self._run(plan)
        (self.request.scratch / f"{plan.name}.json").write_text(made.model_dump_json(indent=1))
        return made

    def _kept(self, name: str) -> bytes | None:
        path = self.request.reuse / name if self.request.reuse else None
        return path.read_bytes() if path is not None and path.is_file() else None

    def _run(self, plan: _Plan) -> VerifyRun:
        recording = self.recording(plan)
        _remove(recording)
        recording.mkdir(parents=True)
        self._lay_out(plan.tree)
        self._tell(f"{plan.name}: {self.request.command.text}")
        proof = Proof(
            draws=True, seed=SEED, record=recording, record_steps=DETAILED,
            most_backwards=self.most_backwards, **plan.proof,
        )  # fmt: skip
        request = self._request(plan, proof)
        oracle: list[dict[str, Any]] = []

        def on_event(event: Any) -> None:
            if event.event == "note" and event.data.get("kind") in ("oracle", "injection"):
                oracle.append(dict(event.data))

        output = self._make_run(request, on_event=on_event)
        return VerifyRun(
            name=plan.name, tree=plan.tree, outcome=output.outcome, explanation=output.explanation,
            duration=output.duration, steps=output.steps, device=output.device, losses=output.losses,
            exception=output.exception, log=str(request.log), recording=str(recording), notes=oracle,
            command=_command_line(request, proof), cause=_cause(output),
        )  # fmt: skip

    def tests(self, tree: Literal["original", "migrated"]) -> own_tests.TestsOutput:
        """Runs the tree's own tests on the CPU, in a fresh copy."""
        request = self.request
        if tree == "original" and (kept := self._kept("tests-original.json")) is not None:
            return own_tests.TestsOutput.model_validate_json(kept)
        self._lay_out(tree)
        self._tell(f"the repository's own tests, {tree}")
        made = own_tests.run_tests(
            own_tests.TestsRequest(
                cwd=self._folder / request.scope, writable=self._folder, python=request.python, folders=self._paths(),
                log=request.scratch / f"tests-{tree}.log", sandbox=request.sandbox,
                timeout=min(request.timeout or TESTS_SECONDS, TESTS_SECONDS),
            )
        )  # fmt: skip
        (request.scratch / f"tests-{tree}.json").write_text(made.model_dump_json(indent=1))
        return made

    def _paths(self) -> list[Path]:
        return [self._folder / path for path in self.request.import_paths]

    def _lay_out(self, tree: Literal["original", "migrated"]) -> None:
        _remove(self._folder)
        template = self.request.original if tree == "original" else self.request.migrated
        shutil.copytree(template, self._folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))

    def _request(self, plan: _Plan, proof: Proof) -> runner.RunRequest:
        request = self.request
        return runner.RunRequest(
            command=request.command.importing(self._paths()),
            cwd=self._folder / request.scope,
            device=request.device if plan.on_device else "cpu",
            python=request.python,
            steps=request.steps or None,
            timeout=request.timeout,
            idle_timeout=request.idle_timeout,
            memory=request.memory,
            sandbox=request.sandbox,
            writable=[self._folder],
            numerics=plan.numerics,
            log=request.scratch / f"{plan.name}.log",
            proof=proof,
        )


def _cause(output: runner.RunOutput) -> Cause | None:
    """The known cause that a run's error says itself; a log line or what was printed is too little to blame by."""
    found = diagnose(output) if output.exception is not None else []
    return found[0] if found and found[0].confidence is Confidence.CERTAIN else None


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path, ignore_errors=True)


def _command_line(request: runner.RunRequest, proof: Proof) -> str:
    """The environment and command of a run, for a person who wants to see it again."""
    variables = {**proof.variables(), **request.command.env}
    words = ["env", *(f"{name}={value}" for name, value in variables.items())]
    return f"{shlex.join(words)} {runner.command_line(request)}"
