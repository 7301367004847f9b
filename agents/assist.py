"""The model's part in a migration: it gets what rules left, and what it makes of it is judged like everything else."""

from __future__ import annotations

from collections.abc import Sequence

from agents.context import Context
from agents.llm import loop
from agents.llm.budget import Budget, Spent, Stop
from agents.llm.client import Model
from agents.llm.messages import Message
from agents.llm.trajectory import Step, Trajectory
from agents.progress import WIDTH
from agents.state import Assistance, Result, State, Verdict
from agents.toolkit import tools
from agents.toolkit.bench import Bench
from tools import git
from tools.findings import Finding, Grade
from tools.refusals import refuse
from tools.run import sandbox_available
from tools.scan import scan

_TAKEN = frozenset({"parses", "clean", "runs", "forward", "gradients", "trains", "preserves"})
_LEFT_OUT = frozenset({"verify_program", "undo"})
"""Judging is the migration's own next step, and the rules' commits are not the model's to take back."""


def task(state: State, context: Context) -> str | None:
    """What rules left, as words for a model; None where there is nothing."""
    failures = [record for record in state.latest if not record.ended_well]
    found = scan(context.root(state), select=state.settings.select, ignore=state.settings.ignore).findings
    left = [finding for finding in found if finding.grade is not Grade.ADVICE]
    if not failures and not left:
        return None
    lines = ["These are left of the migration.", ""]
    for record in failures:
        lines += [f"`{record.entry}` fails: <data>{_marked(record.explanation)}</data>"]
    for diagnosis in state.diagnoses:
        if diagnosis.attempt == state.attempt:
            lines.append(f"Diagnosis: {_marked(diagnosis.cause)} Remedy: {diagnosis.remedy}")
    if left:
        lines += ["", "Findings that need a change:", *(_line(finding) for finding in left[:40])]
    if failures:
        advice = [finding for finding in found if finding.grade is Grade.ADVICE]
        lines += ["", "Findings that may matter:", *(_line(finding) for finding in advice[:20])] if advice else []
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    note = f" ({finding.note})" if finding.note else ""
    return f"- {finding.path}:{finding.line} {finding.rule} {finding.message}{note}"


def _marked(text: str) -> str:
    return text.replace("</data>", "</ data>")


def work(state: State, context: Context, model: Model, budget: Budget, name: str, characters: int) -> Assistance:
    """Let the model work until it answers or a limit ends it; its commits are on the private tree then.

    Args:
        state: The migration so far, whose last run failed or left findings.
        context: Its folder.
        model: Who is asked.
        budget: What it may spend.
        name: Of the model, for the report.
        characters: Of messages in one call.
    """
    text = task(state, context)
    assert text is not None
    sandboxed = state.request.sandbox and sandbox_available()
    bench = Bench(state, context, only_entries=not sandboxed, runs="model-run")
    before = bench.tip()
    trajectory = Trajectory(context.folder.path / "trajectory.json", name, state.origin.name, before)
    trajectory.add(Step(kind="said", text=text))
    messages = [loop.system_message("assist"), Message(role="user", content=text, evidence=True)]
    stop, problem, answer = _turns(model, messages, bench, budget, characters, trajectory)
    trajectory.add(Step(kind="stop", text=f"{stop}: {problem}".rstrip(": ")))
    commits = bench.state.commits[len(state.commits) :]
    return Assistance(
        model=name, stop=stop.value, said=answer, base=before, commits=commits, attempt=state.attempt,
        trajectory=str(trajectory.path), reason=problem,
    )  # fmt: skip


def _turns(
    model: Model, messages: list[Message], bench: Bench, budget: Budget, characters: int, trajectory: Trajectory
) -> tuple[Stop, str, str]:
    offered = {name: tool for name, tool in tools().items() if name not in _LEFT_OUT}
    spent, progress = Spent(), bench.context.progress
    while True:
        progress.working("model", f"call {spent.calls + 1}")
        thought = loop.think(model, messages, spent, budget, characters, offered=list(offered.values()))
        spent = thought.spent
        if thought.reply is not None:
            trajectory.add(Step(kind="reply", reply=thought.reply))
        messages += thought.messages
        if thought.stop is not None:
            said = thought.reply.message.content if thought.reply else ""
            return thought.stop, thought.problem, said
        for call in thought.calls:
            progress.working("model", f"{call.name} {call.arguments[: 80 - WIDTH]}")
            result, spent = loop.act(call, bench, spent, offered)
            messages.append(loop.answer_of(call, result))
            trajectory.add(Step(kind="tool", tool=call.name, arguments=call.arguments, text=messages[-1].content))
        if spent.wrong_in_a_row >= loop.MOST_WRONG:
            return Stop.NO_PROGRESS, "", ""


def cheats(state: State, context: Context) -> list[str]:
    """Why all that the model changed, taken together, is refused; single edits were looked at one by one."""
    assert state.assistance is not None
    tree, base = context.folder.tree, state.assistance.base
    names = git.run_git(tree, "diff", "--name-only", "-z", base, "HEAD", private=True).decode().split("\0")
    changed = [name for name in names if name]
    before = {name: _at(context, base, name) for name in changed}
    return refuse(before, {name: _at(context, "HEAD", name) for name in changed})


def _at(context: Context, commit: str, name: str) -> str | None:
    try:
        return git.run_git(context.folder.tree, "show", f"{commit}:{name}", private=True).decode("utf-8", "replace")
    except git.GitError:
        return None


def reason_to_drop(before: Sequence[Verdict], after: Sequence[Verdict]) -> str:
    """Why the model's change does not stand: a stage fails that did not fail without it; empty where none does."""
    failed_before = {verdict.stage for verdict in before if verdict.result is Result.FAIL}
    for verdict in after:
        if verdict.stage not in _TAKEN or verdict.result is not Result.FAIL:
            continue
        if verdict.stage not in failed_before or verdict.stage == "runs":
            # What it was given for may not fail still.
            return f"with it, {verdict.stage} fails: {verdict.reason}"
    return ""
