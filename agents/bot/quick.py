"""Commands that are answered at once: status, stop, explain, help, and what is wrong with one."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

from agents.bot import findings as wording
from agents.bot.commands import HELP
from agents.bot.jobs import Job
from agents.bot.store import Store
from tools.errors import UserError
from tools.findings import Finding
from tools.rules import all_rules


def answer(job: Job, store: Store) -> str:
    """What to say to a command that needs no clone."""
    assert job.command is not None
    match job.command.name:
        case "status":
            return _status(job, store)
        case "stop":
            return _stop(job, store)
        case "explain":
            return _explain(job, store)
        case _:
            return HELP


def _status(job: Job, store: Store) -> str:
    rows = store.jobs(job.place, job.number)
    if not rows:
        return "There was no job in this thread."
    lines = ["| job | asked for by | when (UTC) | state | |", "|---|---|---|---|---|"]
    for row in rows:
        at = datetime.fromtimestamp(row["at"], UTC).strftime("%Y-%m-%d %H:%M")
        state = f"{row['result']} (to be stopped)" if row["stop"] and row["result"] == "working" else row["result"]
        cells = (
            wording.text(row["title"]),
            f"`{row['sender']}`",
            at,
            state,
            wording.text(row["detail"].split("\n")[0]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _stop(job: Job, store: Store) -> str:
    titles = store.stop(job.place, job.number, job.sender)
    if not titles:
        return "Nothing is being worked on in this thread."
    return f"Stopping: {', '.join(wording.text(title) for title in titles)}."


def _explain(job: Job, store: Store) -> str:
    assert job.command is not None
    subject = job.command.subject
    known = store.findings(job)
    if not subject:
        if known is None:
            return "There was no job in this thread whose findings could be explained. `/torchtpu scan` makes them."
        found = [Finding.model_validate(one) for one in known[2]]
        return f"**{wording.text(known[1])}**\n\n{wording.listed(found) or 'Nothing was found.'}"
    if subject.lstrip("#").isdecimal():
        number = int(subject.lstrip("#"))
        if known is None or not 1 <= number <= len(known[2]):
            return f"There is no finding {number} in this thread. `/torchtpu scan` lists them."
        finding = Finding.model_validate(known[2][number - 1])
        note = f" {wording.text(finding.note)}" if finding.note else ""
        return f"`{wording.code(finding.path)}:{finding.line}`{note}\n\n{_rule(finding.rule)}"
    return _rule(subject.split(":")[-1])


def _rule(code: str) -> str:
    """A rule's own words, with its first case."""
    try:
        rule = next((one for one in all_rules() if code == one.ID), None)
    except UserError as error:
        return error.message
    if rule is None:
        return f"There is no rule `{code}`."
    why = inspect.cleandoc(type(rule).__doc__ or "")
    text = f"**{rule.ID} {rule.NAME}** ({rule.GRADE.value}): {rule.MESSAGE}\n\n{why}"
    case = next(iter(rule.INVALID), None)
    if case is None:
        return text
    after = f"\n\nAfter:\n\n{wording.block(case.fixed)}" if case.fixed is not None else ""
    return f"{text}\n\nBefore:\n\n{wording.block(case.text)}{after}"
