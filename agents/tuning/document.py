"""The report of a tuning run, as JSON and as Markdown."""

from __future__ import annotations

from pydantic import BaseModel

from agents.report.make import version
from agents.runs import RunFolder
from agents.state import Delivery
from agents.tuning.state import Trial, TuneState, speedup
from agents.tuning.text import described, short, total
from tools.errors import Exit
from tools.estimate import Estimate
from tools.profiles.text import size


class Document(BaseModel):
    """What a tuning run came to."""

    kind: str = "tune"
    version: str
    run: str
    source: str
    target: str
    plain_command: str
    command: str
    plain: Estimate | None
    operators: Estimate | None
    whole: Estimate | None
    best: Estimate | None
    speedup: float | None
    total: str
    trials: list[Trial]
    commits: list[str]
    stopped: str
    delivery: Delivery
    log: str
    headline: str
    exit_code: int


def make(state: TuneState, delivery: Delivery, folder: RunFolder) -> Document:
    """The document of a run that has ended."""
    gain = speedup(state.plain, state.best)
    fits = state.best is not None and state.best.outcome == "ok"
    return Document(
        version=version(),
        run=state.run_id,
        source=state.origin.name,
        target=state.request.target or "",
        plain_command=state.entries[0].command if state.entries else "",
        command=state.command,
        plain=state.plain,
        operators=state.operators,
        whole=state.whole,
        best=state.best,
        speedup=gain,
        total=total(state),
        trials=state.trials,
        commits=[f"{commit.sha[:12]} {commit.rule}: {commit.title}" for commit in state.commits],
        stopped=state.stopped,
        delivery=delivery,
        log=str(folder.path / "trials.jsonl"),
        headline=f"{gain:.2f}x" if gain else "fits" if fits else "none",
        exit_code=int(Exit.PASSED if fits else Exit.FAILED),
    )


def render(document: Document) -> str:
    """The document as Markdown."""
    lines = [f"# Tuned for {document.target}: {document.source}", "", _BASIS, ""]
    for name, one in (
        ("plain migration, as it launches its step", document.plain),
        ("the same, a program for every operator", document.operators),
        ("the same, were the whole step one program", document.whole),
        ("with what was kept", document.best),
    ):
        if one is not None:
            lines.append(f"- {name}: {described(one)}")
    lines += ["", f"**{document.total}**", "", "## What was tried", "", _table(document.trials)]
    if document.stopped:
        lines += ["", f"Not all was tried: {document.stopped}."]
    lines += ["", "## What was compared", ""]
    for trial in document.trials:
        lines += [f"- {trial.number} `{trial.transform}`: {said}" for said in trial.verified]
    if document.commits:
        lines += ["", "## Commits", "", *(f"- {commit}" for commit in document.commits)]
    if document.command != document.plain_command:
        lines += ["", "## Command", "", f"`{document.command}`"]
    delivery = document.delivery
    lines += ["", "## Next", ""]
    lines += [delivery.note] if delivery.note else []
    lines += [f"- review: `{delivery.review}`"] if delivery.review else []
    lines += [f"- merge: `{delivery.merge}`"] if delivery.merge else []
    lines += [f"- every trial, a line each: `{document.log}`", ""]
    return "\n".join(lines)


_BASIS = (
    "Times are estimates, not measurements: each program a step launches was compiled by Google's compiler, and its"
    " time is by the model of docs/profile.md; the range goes from the roofline to the compiler's window model as it"
    " is. What the host takes to launch programs is not in them."
)


def _table(trials: list[Trial]) -> str:
    rows = [
        "| # | what | changes | before | after | launches | HBM | verdict | why |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [_row(trial) for trial in trials]
    return "\n".join(rows)


def _row(trial: Trial) -> str:
    before, after = trial.before, trial.after
    cells = [str(trial.number), f"`{trial.transform}` {trial.title}", trial.changes]
    cells += [short(before) if before else "-", short(after) if after else "-"]
    cells += [f"{before.launches} -> {after.launches}" if before and after else "-"]
    cells += [size(after.peak) if after and after.peak else "-"]
    gain = trial.gain
    cells += [trial.verdict + (f", {gain:.2f}x" if gain and trial.verdict == "kept" else ""), trial.reason or "-"]
    return f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"
