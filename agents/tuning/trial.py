"""Tries the next transformation: estimates it, verifies it, and keeps it as a commit or takes it back."""

from __future__ import annotations

import json
import re
import time

from langgraph.runtime import Runtime

from agents.context import Context
from agents.tuning import program, text
from agents.tuning.check import check
from agents.tuning.message import message
from agents.tuning.state import Trial, TuneState, speedup
from tools import git
from tools.errors import UserError
from tools.estimate import Estimate
from tools.transforms import every
from tools.transforms.base import Advice, Proposal, Subject, Transform

# Less than that is no reason to change a program, whatever an estimate says.
WORTH = 1.01
_NEED = re.compile(r"memory required for[^(]*\(([\d.]+)([KMGT])\)")
_UNITS = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10}


def trial(state: TuneState, runtime: Runtime[Context]) -> dict[str, object]:
    """Try one transformation."""
    context = runtime.context
    name = state.queue[0]
    transform = next(one for one in every() if name == one.ID)
    git.start_branch(context.folder.tree, state.branch, state.tip)
    began = time.monotonic()
    context.progress.working("try", transform.TITLE)
    proposal = transform.propose(_subject(state, context))
    made = _empty(state, transform, proposal)
    updates: dict[str, object] = {}
    if isinstance(proposal, Proposal):
        made, updates = _tried(state, context, transform, proposal, made)
    made = made.model_copy(update={"seconds": round(time.monotonic() - began, 1)})
    _log(context, made)
    context.progress.done("try", text.line(made))
    return {"queue": state.queue[1:], **updates, "trials": [*state.trials, made]}


def _subject(state: TuneState, context: Context) -> Subject:
    fits = None if state.best is None else state.best.outcome != "out-of-memory"
    return Subject(context.root(state), state.command, program.recorded(state), fits)


def _empty(state: TuneState, transform: Transform, proposal: Proposal | Advice | None) -> Trial:
    verdict, reason = "dropped", ""
    if proposal is None:
        verdict, reason = "not applicable", "the program gives no occasion"
    elif isinstance(proposal, Advice):
        verdict, reason = "advice", proposal.reason
    return Trial(
        number=len(state.trials) + 1,
        transform=transform.ID,
        title=proposal.title if isinstance(proposal, Proposal) else transform.TITLE,
        changes=transform.CHANGES,
        verdict=verdict,  # type: ignore[arg-type]
        reason=reason,
        command=_with(proposal, state.command),
    )


def _with(proposal: Proposal | Advice | None, command: str) -> str:
    """A command with what a proposal changes of it."""
    return proposal.command(command) if isinstance(proposal, Proposal) and proposal.command else command


def _tried(
    state: TuneState, context: Context, transform: Transform, proposal: Proposal, made: Trial
) -> tuple[Trial, dict[str, object]]:
    """What came of a proposal, and of the state what it changes where it is kept."""
    tree, root = context.folder.tree, context.root(state)
    for path, data in proposal.files.items():
        (root / path).write_bytes(data)
    try:
        with program.copied(state, context, made.command) as request:
            recording = program.recording(request)
            # Where it does not fit, that is what counts; all estimates are then of the step as one program.
            unfit = state.plain is not None and state.plain.outcome == "out-of-memory"
            after = program.estimated(request, context, "compiled" if unfit else "launched")
    except UserError as error:
        git.start_branch(tree, state.branch, state.tip)
        return made.model_copy(update={"before": state.best, "reason": error.message[:400]}), {}
    made = made.model_copy(update={"before": state.best, "after": after})
    reason = _no_gain(state.best, after)
    if not reason:
        checked = check(state, context, made.number, _with(proposal, state.small), transform.CHANGES)
        made = made.model_copy(update={"verified": checked.said})
        reason = "" if checked.passed else f"not verified: {checked.reason}"[:600]
    if reason:
        git.start_branch(tree, state.branch, state.tip)
        return made.model_copy(update={"reason": reason}), {}
    kept = made.model_copy(update={"verdict": "kept"})
    updates: dict[str, object] = {
        "best": after,
        "recording": recording,
        "command": made.command,
        "small": _with(proposal, state.small),
    }
    if proposal.again:
        updates["queue"] = state.queue
    if proposal.files:
        commit = _commit(state, context, kept, proposal)
        kept = kept.model_copy(update={"commit": commit.sha})
        updates["commits"] = [*state.commits, commit]
    return kept, updates


def _no_gain(before: Estimate | None, after: Estimate) -> str:
    """Why the estimate is no reason to keep the change; empty where it is one."""
    if before is not None and before.outcome == "out-of-memory":
        if after.outcome == "ok" or _need(after) < 0.99 * _need(before):
            return ""
    if after.outcome != "ok" or after.seconds is None:
        return f"{after.outcome}: {' '.join(after.message.split())[:300]}"
    gain = speedup(before, after)
    if gain is None:
        return "the estimates cannot be compared"
    if before is not None and after.left_out > before.left_out:
        return f"{after.left_out - before.left_out} of its programs could not be compiled and are not in the time"
    return "" if gain >= WORTH else f"no gain: {gain:.3f} times"


def _need(one: Estimate) -> float:
    """Gibibytes that a step which does not fit needs, as the compiler says."""
    match = _NEED.search(one.message)
    return float(match[1]) * _UNITS[match[2]] if match else float("inf")


def _commit(state: TuneState, context: Context, kept: Trial, proposal: Proposal) -> git.Commit:
    scope = f"{state.origin.scope}/" if state.origin.scope else ""
    files = sorted(f"{scope}{name}" for name in proposal.files)
    sha = git.commit_files(context.folder.tree, files, message(kept, proposal, state), state.request.created)
    return git.Commit(sha=sha, rule=kept.transform, title=kept.title, files=files, findings=1)


def _log(context: Context, made: Trial) -> None:
    """One line of JSON for each trial, in the order they were made; a resumed trial replaces what it had begun."""
    path = context.folder.path / "trials.jsonl"
    known = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    kept = [line for line in known if json.loads(line)["number"] < made.number]
    path.write_text("\n".join([*kept, made.model_dump_json()]) + "\n", encoding="utf-8")
