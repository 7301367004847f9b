"""Says whether a changed program still computes what the plain migration does, in the way that fits the change.

| changes | what is asked for |
|---|---|
| nothing | forward, gradients and trains pass against the plain migration, by error ratio |
| rounding | all of them agree where both are held to float32; in their own precision the losses agree |
| batch | its losses are finite, and the first is near the plain one's: other samples, same weights |

Before that both run as they are, with torch.compile and the deferred mode at work, and their losses are compared: the
comparison by error ratio takes them operator by operator.
"""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import BaseModel

from agents import proving, workspace
from agents.context import Context
from agents.nodes.run import copy_into, request_in
from agents.runs import remove_tree, write_whole
from agents.tuning.state import TuneState
from tools import commands, git, judging
from tools import run as runner
from tools.judging import Facts
from tools.transforms.base import Changes
from tools.verify import VerifyOutput

# bfloat16 keeps eight bits, so that a number is off by 2^-9 at most; a loss is a mean of many.
LOSSES_AGREE = 2.0**-7
# Other samples have another loss, but untrained weights know nothing of either.
FIRST_LOSSES_AGREE = 0.1


class Checked(BaseModel):
    """What a check came to."""

    passed: bool
    reason: str = ""
    said: list[str] = []


def check(state: TuneState, context: Context, number: int, command: str, changes: Changes) -> Checked:
    """Verify the tree as it stands against the plain migration."""
    folder = context.folder.path / "verify"
    folder.mkdir(exist_ok=True)
    plain = folder / "plain"
    remove_tree(plain)
    git.write_files(context.folder.tree, state.migrated, plain)
    try:
        ran = _as_launched(state, context, plain, number, command, changes)
        if not ran.passed or changes == "batch" or not _differs(state, context):
            return ran
        compared = _by_ratio(state, context, plain, folder / f"trial-{number}", changes)
        return Checked(passed=compared.passed, reason=compared.reason, said=[*ran.said, *compared.said])
    finally:
        remove_tree(plain)


def _differs(state: TuneState, context: Context) -> bool:
    """Whether files are other than those of the plain migration; with the same files there is nothing to compare."""
    return bool(git.run_git(context.folder.tree, "diff", "--name-only", state.migrated, private=True))


def _as_launched(
    state: TuneState, context: Context, plain: Path, number: int, command: str, changes: Changes
) -> Checked:
    """Runs the plain and the changed program on the device as they are, and compares their losses."""
    kept = context.folder.path / "verify" / "plain-run.json"
    if kept.is_file():
        before = runner.RunOutput.model_validate_json(kept.read_bytes())
    else:
        context.progress.working("verify", "running the plain migration")
        before = _run(state, context, plain, _plain(state), "plain-run")
        write_whole(kept, before.model_dump_json())
    context.progress.working("verify", "running the changed program")
    after = _run(state, context, context.folder.tree, command, f"trial-{number}-run")
    for name, output in (("plain migration", before), ("changed program", after)):
        if output.outcome not in ("completed", "stopped-at-steps"):
            return Checked(passed=False, reason=f"the {name} does not run on the device: {output.explanation}")
    return losses_agree(before.losses, after.losses, changes)


def losses_agree(before: list[float], after: list[float], changes: Changes) -> Checked:
    """Whether two runs' losses are those of the same training; of other batches, of the same beginning."""
    if not before or not after:
        return Checked(passed=False, reason="the runs tell no losses, so that nothing can be compared")
    if not all(map(math.isfinite, after)):
        return Checked(passed=False, reason="a loss is not finite")
    if changes == "batch":
        apart = abs(after[0] - before[0]) / max(abs(before[0]), 1e-30)
        said = f"first loss {before[0]:.4g} and {after[0]:.4g} on other samples, last {before[-1]:.4g}, {after[-1]:.4g}"
        near = apart <= FIRST_LOSSES_AGREE
        return Checked(passed=near, reason="" if near else f"{said}: too far apart", said=[said])
    if len(before) != len(after):
        return Checked(passed=False, reason=f"{len(before)} losses before, {len(after)} after")
    worst = max(abs(b - a) / max(abs(a), 1e-30) for a, b in zip(before, after, strict=True))
    said = f"{len(after)} losses as it runs, {after[0]:.4g} to {after[-1]:.4g}: at most {worst:.1e} from the plain ones"
    near = worst <= LOSSES_AGREE
    return Checked(passed=near, reason="" if near else f"{said}, where {LOSSES_AGREE:.1e} is allowed", said=[said])


def _plain(state: TuneState) -> str:
    """The command that verification runs of the plain migration: the one named for it, else the entry."""
    return state.options.verify_entry or state.entries[0].command


def _run(state: TuneState, context: Context, tree: Path, command: str, name: str) -> runner.RunOutput:
    folder = context.folder.path / "verify"
    work = folder / "work"
    try:
        copy_into(work, tree, state)
        as_launched = {"steps": state.settings.verify_steps, "numerics": "tpu"}
        request = request_in(work, command, folder / f"{name}.log", state).model_copy(update=as_launched)
        for number, text in enumerate(state.settings.setup, 1):
            setup = {"command": commands.parse(text), "device": "cpu", "steps": None}
            workspace.set_up(text, request.model_copy(update={**setup, "log": folder / f"setup-{number}.log"}))
        return runner.run(request)
    finally:
        remove_tree(work)


def _by_ratio(state: TuneState, context: Context, plain: Path, folder: Path, changes: Changes) -> Checked:
    earlier = context.folder.path / "verify" / "first"
    # What the first comparison ran of the plain migration serves all that follow.
    reuse = earlier if (earlier / "result.json").is_file() else None
    trees = proving.private_trees(plain, state, context).model_copy(update={"reuse": reuse})
    into = folder if reuse else earlier
    output = proving.compare_trees(trees, _plain(state), into, lambda said: context.progress.working("verify", said))
    return _unchanged(output) if changes == "nothing" else _rounded(output, state.request.device)


def _unchanged(output: VerifyOutput) -> Checked:
    said = [f"{name} {output.stages[name].result}: {output.stages[name].reason}" for name in judging.STAGES]
    bad = [name for name in judging.COMPARED if output.stages[name].result != "pass"]
    if output.stages["preserves"].result == "fail":
        bad.append("preserves")
    reasons = "; ".join(f"{name} {output.stages[name].result}: {output.stages[name].reason}" for name in bad)
    return Checked(passed=not bad, reason=reasons, said=said)


def _rounded(output: VerifyOutput, device: str) -> Checked:
    facts = Facts(device=device, runs={run.name: run for run in output.runs})
    problems = judging.float32_problems(facts)
    if problems is None:
        return Checked(passed=False, reason=f"not compared: {output.stages['forward'].reason}")
    if problems:
        return Checked(passed=False, reason=f"held to float32 it differs: {problems[0].message}")
    if output.stages["preserves"].result == "fail":
        return Checked(passed=False, reason=output.stages["preserves"].reason)
    kept = "held to float32, forward, gradients and training agree with the plain migration by error ratio"
    return Checked(passed=True, said=[kept, f"preserves {output.stages['preserves'].result}"])
