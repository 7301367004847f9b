"""What the migrate graph knows: typed, small, and kept in the checkpoint after every node.

Anything large (findings, logs, patches) is a file in the run folder; the state holds counts and names.
"""

from __future__ import annotations

import operator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.compare import Figures, Problem
from tools.git import Checkout, Commit

STAGES = ("parses", "clean", "runs", "forward", "gradients", "trains", "preserves", "fits", "fast")


class TuneOptions(BaseModel):
    """What `tune` is asked for besides what it shares with `migrate`."""

    model_config = ConfigDict(frozen=True)

    budget: float | None = Field(default=None, description="seconds after which nothing new is tried")
    max_trials: int | None = None
    quick: bool = Field(default=False, description="stop the compiler before it generates code: no cycles")
    verify_entry: str | None = Field(default=None, description="a smaller command for the comparison, else the entry")
    only: list[str] = Field(default=[], description="transformations to try, all if empty")
    keep_batch: bool = Field(default=False, description="do not try other batches")


class Request(BaseModel):
    """What the user asked for; fixed when the run starts."""

    model_config = ConfigDict(frozen=True)

    source: str = Field(description="path or git URL, as given")
    created: str = Field(description="when the run began, ISO 8601 with offset")
    entries: list[str] = []
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: str | None = None
    steps: int | None = Field(default=None, description="optimizer steps per entry; 0 is to the end")
    timeout: float | None = None
    idle_timeout: float | None = None
    memory: int | None = Field(default=None, description="bytes")
    sandbox: bool = True
    setup: list[str] = []
    numerics: Literal["float32", "tpu"] = "float32"
    unsafe_fixes: bool = False
    select: list[str] = []
    ignore: list[str] = []
    out: str | None = None
    branch: str | None = None
    dry_run: bool = False
    approve: bool = False
    verify: bool = Field(default=True, description="compare with the original: forward, gradients, trains, preserves")
    verify_steps: int | None = Field(default=None, description="optimizer steps of each run of the comparison")
    target: str | None = Field(default=None, description="TPU slice that a step is profiled for")
    model: str | None = Field(default=None, description="language model for what rules leave")
    replay: str | None = Field(default=None, description="trajectory file whose model is played again")
    tune: TuneOptions | None = Field(default=None, description="the run tunes after it migrates")


class Source(BaseModel):
    """Where the code comes from, and what of it is not part of the migration."""

    kind: Literal["repository", "folder", "address"]
    name: str = Field(description="how messages call it; without credentials")
    files: str | None = Field(description="folder with the user's own files, for data that is not in git")
    checkout: Checkout | None = None
    scope: str = Field(default="", description="subdirectory that is migrated, '' for all")
    base: str = Field(description="commit of the private tree that the migration starts from")
    notes: list[str] = []

    @property
    def data(self) -> Path | None:
        """Folder with the user's own files, where there is one."""
        return Path(self.files) if self.files else None

    @property
    def modified(self) -> set[str]:
        """Files of it with changes that are not committed; what git has of them is taken."""
        return set(self.checkout.modified) if self.checkout else set()


class Entry(BaseModel):
    """One command that exercises the code."""

    command: str
    origin: str = Field(description="--entry, torchtpu.toml, or the file and line it was found at")
    why: str = ""
    scripts: list[str] = Field(default=[], description="files of the tree that the command starts")


class Settings(BaseModel):
    """Request and torchtpu.toml taken together; what the nodes go by."""

    entries: list[str] = []
    setup: list[str] = []
    select: list[str] = []
    ignore: list[str] = []
    steps: int = 50
    verify_steps: int = 20
    timeout: float = 1800.0
    idle_timeout: float = 300.0
    memory: int | None = None


class Assessment(BaseModel):
    """What the scan saw, as counts; the findings are in `findings.json` of the run folder."""

    files: int
    parsed: int
    findings: int
    safe: int
    unsafe: int
    advice: int
    skipped: int


class PlanItem(BaseModel):
    """What is to be done about all findings of one rule."""

    rule: str
    grade: str
    findings: int
    files: int
    action: Literal["fix", "leave"]
    why: str = ""


class Plan(BaseModel):
    """What the patch node may do."""

    items: list[PlanItem] = []
    entries: list[str] = []
    approved: bool = True


class RunRecord(BaseModel):
    """How one entry ran; the whole result is in the file named by `result`."""

    entry: str
    attempt: int
    outcome: str
    explanation: str
    exit_code: int | None = None
    signal: str | None = None
    duration: float = 0.0
    device: dict[str, object] | None = None
    steps: int = 0
    device_steps: int = 0
    device_ops: int | None = None
    losses: list[float] = []
    warnings: list[dict[str, object]] = []
    exception: dict[str, object] | None = None
    native_tail: list[str] = []
    fatal: str | None = Field(default=None, description="the native line that says why it died")
    backend_frame: str | None = Field(default=None, description="torch_tpu's or libtpu's frame of the thread that died")
    loaded: list[str] = Field(default=[], description="files of the project that it imported")
    sandboxed: bool = False
    sandbox_note: str = ""
    without_torch: bool = Field(default=False, description="its Python programs all reported, and none imported torch")
    log: str | None = None
    result: str | None = None
    command: str = Field(default="", description="the exact command line a person can repeat")

    @property
    def ended_well(self) -> bool:
        """Whether the program came to its end, or to the number of steps asked for."""
        return self.outcome in {"completed", "stopped-at-steps"}


class Owner(StrEnum):
    """Whose a failure is."""

    CODE = "code"
    BACKEND = "backend"
    SIMULATOR = "simulator"
    ENVIRONMENT = "environment"


class Diagnosis(BaseModel):
    """From a failed run to its cause and a remedy."""

    kind: str
    owner: Owner
    cause: str
    remedy: str = ""
    where: str | None = None
    module: str | None = Field(default=None, description="the module that an import did not find")
    entry: str = ""
    attempt: int = 1
    knowledge: str | None = Field(default=None, description="the entry of prompts/knowledge that was recognised")
    confidence: Literal["certain", "likely", "possible"] | None = None
    rules: list[str] = Field(default=[], description="rules that find the cause in the source")
    others: list[str] = Field(default=[], description="further entries that fit")

    @property
    def signature(self) -> str:
        """Two failures with the same signature are the same failure."""
        return f"{self.kind}|{self.entry}|{self.where or self.cause}"


class Result(StrEnum):
    """A stage's verdict."""

    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not run"


class Verdict(BaseModel):
    """One rung of the ladder, with the evidence behind it."""

    stage: str
    result: Result
    reason: str
    owner: Owner | None = None
    evidence: list[str] = Field(default=[], description="commands and artefacts a person can look at")
    figures: dict[str, Figures] = Field(default={}, description="error ratios by comparison, where stages compare runs")
    problems: list[Problem] = Field(default=[], description="differences from the original, the first cause in front")


class Assistance(BaseModel):
    """What a language model did with what rules left, and what became of it."""

    model: str
    stop: str = Field(description="why its work ended")
    said: str = Field(default="", description="its own account, which is no evidence")
    base: str = Field(default="", description="commit it began from")
    commits: list[Commit] = []
    attempt: int = Field(default=1, description="attempt it was given")
    kept: bool = Field(default=False, description="its change passed the same verification")
    dropped: bool = False
    reason: str = Field(default="", description="why it was dropped, or what went wrong")
    trajectory: str = ""
    before: list[Verdict] = Field(default=[], description="verdicts without its change")


class Delivery(BaseModel):
    """What the user was given."""

    kind: Literal["branch", "patch", "nothing"]
    branch: str | None = None
    tip: str | None = None
    patch: str | None = None
    note: str = ""
    review: str = ""
    merge: str = ""
    discard: str = ""


class State(BaseModel):
    """State of the migrate graph."""

    run_id: str
    request: Request
    settings: Settings = Settings()
    source: Source | None = None
    entries: list[Entry] = []
    alternatives: list[Entry] = Field(default=[], description="discovered entries not tried yet, best first")
    assessment: Assessment | None = None
    plan: Plan | None = None
    commits: list[Commit] = []
    import_paths: list[str] = Field(default=[], description="folders of the tree put on PYTHONPATH")
    attempt: int = 1
    runs: list[RunRecord] = []
    diagnoses: list[Diagnosis] = []
    verdicts: list[Verdict] = []
    assistance: Assistance | None = None
    delivery: Delivery | None = None
    durations: Annotated[dict[str, float], operator.or_] = {}

    @property
    def branch(self) -> str:
        """Name of the migration branch."""
        return self.request.branch or f"torchtpu/{'tune' if self.request.tune else 'migrate'}-{self.run_id}"

    @property
    def origin(self) -> Source:
        """The source; intake has run before anything asks."""
        assert self.source is not None
        return self.source

    @property
    def tip(self) -> str:
        """The newest commit of the private tree that counts."""
        return self.commits[-1].sha if self.commits else self.origin.base

    @property
    def latest(self) -> list[RunRecord]:
        """The runs of the newest attempt."""
        return [run for run in self.runs if run.attempt == self.attempt]


MODELS: tuple[type, ...] = (
    TuneOptions, Request, Source, Entry, Settings, Assessment, PlanItem, Plan, RunRecord, Owner, Diagnosis,
    Result, Verdict, Figures, Problem, Assistance, Delivery, Checkout, Commit,
)  # fmt: skip
"""Everything that may appear in a checkpoint."""
