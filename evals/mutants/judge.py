"""Has the verifier judge one edit, and says whether it was right."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from pydantic import BaseModel

from evals import results
from evals.mutants import forked
from evals.mutants.edits import Edit, lay_out
from tools import commands
from tools.verify import VerifyOutput, VerifyRequest, verify

ENTRY = "python train.py"
STEPS = 14


class Judged(BaseModel):
    """What the verifier said of one edit.

    Attributes:
        failed: Stages that its verdicts and problems name as failing.
        located: Whether one of the first problems names the file that was edited.
        said: The first reason.
        revision: The commit that judged it.
    """

    id: str
    harmless: bool
    expected: list[str]
    failed: list[str]
    located: bool
    said: str
    seconds: float
    revision: str = ""

    @property
    def caught(self) -> bool:
        """Whether any stage failed."""
        return bool(self.failed)

    @property
    def right_stage(self) -> bool:
        """Whether an expected stage is among those that failed."""
        return bool(set(self.expected) & set(self.failed))

    @property
    def right(self) -> bool:
        """Whether a fault was caught where it belongs, or a harmless change let through."""
        return not self.caught if self.harmless else self.right_stage


def judge(edit: Edit, folder: Path) -> Judged:
    """Compare the edited migration with the original; runs of the original are made once for a program."""
    began = time.monotonic()
    original, migrated = lay_out(edit, folder / edit.program / "trees")
    kept = folder / edit.program / "kept"
    scratch = folder / edit.program / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    output = verify(
        VerifyRequest(
            command=commands.parse(ENTRY),
            original=original,
            migrated=migrated,
            scratch=scratch,
            device="simulated",
            steps=STEPS,
            timeout=600,
            reuse=kept if kept.is_dir() else None,
            tests=edit.file.startswith("tests/"),
            on_device=edit.device,
        ),
        run=forked.run,
    )
    _keep(scratch, kept)
    return _judged(edit, output, time.monotonic() - began)


def _keep(scratch: Path, kept: Path) -> None:
    """Sets the runs of the original aside for the next edit of the program; their recordings with them."""
    if kept.is_dir():
        return
    shutil.move(scratch, kept)
    for path in kept.glob("*.json"):
        path.write_text(path.read_text().replace(f"{scratch}/", f"{kept}/"))


def _judged(edit: Edit, output: VerifyOutput, seconds: float) -> Judged:
    failing = [stage for stage in output.stages.values() if stage.result == "fail"]
    problems = [problem for stage in failing for problem in stage.problems]
    stages = {stage.stage for stage in failing if edit.device or not stage.problems} | {p.stage for p in problems}
    first = [problem for stage in failing for problem in stage.problems[:3]]
    said = [*(stage.reason for stage in failing), *(f"{p.place} {p.message}" for p in first)]
    return Judged(
        id=edit.id,
        harmless=edit.harmless,
        expected=edit.stages,
        failed=sorted(stages),
        located=any(edit.file in text for text in said),
        said=(failing[0].reason if failing else next(iter(output.stages.values())).reason)[:600],
        seconds=round(seconds, 1),
        revision=results.revision(),
    )
