"""Fixes one finding of the thread's last job, as a commit in a draft pull request of its own."""

from __future__ import annotations

from pathlib import Path

from agents.bot import findings as wording
from agents.bot.desk import Desk, NotPossible
from agents.bot.outcome import Outcome, PullPlan
from agents.bot.tasks import scan
from agents.runs import now
from tools.findings import Finding, Grade, Replacement
from tools.git import commit_files, start_branch
from tools.wording import amount


def fix(desk: Desk) -> Outcome:
    """`/torchtpu fix <finding>`: on the pull request's own branch as base, or on the default branch."""
    command = desk.job.command
    assert command is not None
    sha, _, branch = scan.target(desk)
    if desk.fork:
        raise NotPossible("This pull request comes from a fork, where no branch can be pushed.")
    desk.say("Fixing.", now=True)
    tree = desk.checkout.take(sha or f"refs/heads/{branch}", "tree")
    found = _wanted(desk, scan.examine(desk, tree, "scan").findings, command.subject)
    allowed = [one for one in found if one.edits and (one.grade is Grade.SAFE or command.unsafe_fixes)]
    if not allowed:
        raise NotPossible(_why_not(found))
    base = scan.head_of(desk, "tree")
    name = f"torchtpu/fix-{desk.job.run}"
    start_branch(tree, name, base)
    for path in sorted({one.path for one in allowed}):
        file = _inside(tree, path)
        text = file.read_bytes().decode("utf-8")
        file.write_bytes(applied(text, [e for one in allowed if one.path == path for e in one.edits]).encode("utf-8"))
    rule = allowed[0].rule
    title = f"{rule}: {amount(len(allowed), 'place')} fixed"
    tip = commit_files(tree, sorted({one.path for one in allowed}), title, now())
    desk.checkout.push(tree, tip, name)
    text = f"**{title}**\n\n{wording.listed(allowed)}"
    return Outcome(
        result="done", headline=title, text=text, pull=PullPlan(branch=name, base=branch, title=title, text=text)
    )


def _inside(tree: Path, path: str) -> Path:
    """A file of the tree; one that is reached by a link may lie anywhere."""
    file = tree / path
    if file.is_symlink() or not file.resolve().is_relative_to(tree.resolve()):
        raise NotPossible(f"`{wording.code(path)}` is a link.")
    return file


def _wanted(desk: Desk, now: list[Finding], subject: str) -> list[Finding]:
    """The findings that a subject names, as they stand now."""
    if subject.lstrip("#").isdecimal():
        known = desk.store.findings(desk.job)
        number = int(subject.lstrip("#"))
        if known is None or not 1 <= number <= len(known[2]):
            raise NotPossible(f"There is no finding {number} in this thread. `/torchtpu scan` lists them.")
        kept = Finding.model_validate(known[2][number - 1])
        found = [one for one in now if _same(one, kept)][:1]
    elif ":" in subject:
        path, line, *rule = subject.split(":")
        found = [one for one in now if one.path == path and one.line == int(line) and one.rule in (rule or [one.rule])]
    else:
        found = [one for one in now if one.rule == subject]
    if not found:
        raise NotPossible("The finding is not there any more. `/torchtpu scan` lists what is.")
    return found


def _same(one: Finding, other: Finding) -> bool:
    return (one.rule, one.path, one.source.strip()) == (other.rule, other.path, other.source.strip())


def _why_not(found: list[Finding]) -> str:
    first = found[0]
    if first.grade is Grade.UNSAFE and first.edits:
        return f"The fix of {first.rule} may change behaviour: add `--unsafe-fixes` if that is wanted."
    return f"{first.rule} has no fix here; it is left to a person. {wording.text(first.note or first.message)}"


def applied(text: str, edits: list[Replacement]) -> str:
    """A text with edits made, from the last to the first; one that overlaps another is left out."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    reached = len(text) + 1
    for edit in sorted(edits, key=lambda one: (one.line, one.column), reverse=True):
        start = starts[edit.line - 1] + edit.column - 1
        end = starts[edit.end_line - 1] + edit.end_column - 1
        if end <= reached:
            text = text[:start] + edit.text + text[end:]
            reached = start
    return text
