"""This project's `migrate`, as a user calls it; what it claims is what its report says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from evals.candidates.answer import Answer, Limits
from evals.task import Task
from tools.git import branch_commit, run_git

_RESTS_ON = {"runs": ("runs",), "trains": ("runs", "forward", "gradients", "trains"), "preserves": ("preserves",)}
_BRANCH = "eval/migrated"


def migrate(task: Task, checkout: Path, place: Path, limits: Limits) -> Answer:
    """Run the command on the checkout and take the branch that it makes."""
    command = [sys.executable, "-m", "agents.cli", "migrate", str(checkout), "--json", "--branch", _BRANCH]
    command += [word for entry in task.entries for word in ("--entry", entry)]
    command += ["--timeout", str(limits.timeout), "--python", str(limits.python)]
    command += ["--model", limits.model] if limits.model else []
    with (place / "stderr.log").open("w") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, "TORCHTPU_HOME": str(place / "home")},
        )  # fmt: skip
    (place / "report.json").write_text(done.stdout)
    try:
        report = json.loads(done.stdout)
        verdicts = {verdict["stage"]: verdict for verdict in report["verdicts"]}
    except (ValueError, KeyError):
        return Answer(tree=None, why=f"no report: exit {done.returncode}")
    tree = place / "tree"
    made = ("--branch", _BRANCH) if branch_commit(checkout, _BRANCH) else ()
    run_git(place, "clone", "--quiet", *made, str(checkout), str(tree), private=True)
    passed = {stage for stage, verdict in verdicts.items() if verdict["result"] == "pass"}
    return Answer(
        tree=tree,
        claims=[claim for claim, stages in _RESTS_ON.items() if passed.issuperset(stages)],
        trail={stage: _said(verdict) for stage, verdict in verdicts.items()},
    )


def _said(verdict: dict[str, Any]) -> str:
    return verdict["result"] + (f": {verdict['reason']}" if verdict.get("reason") else "")
