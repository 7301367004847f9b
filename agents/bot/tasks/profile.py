"""Estimates a step of the program for a TPU slice."""

from __future__ import annotations

from agents.bot import findings as wording
from agents.bot.desk import Desk, NotPossible
from agents.bot.outcome import Outcome
from agents.bot.tasks import scan
from agents.bot.tasks.verify import entries_of


def profile(desk: Desk) -> Outcome:
    """`/torchtpu profile <target>`: of the pull request's head, or of the default branch."""
    command = desk.job.command
    assert command is not None and command.target
    desk.need_sandbox()
    sha, _, branch = scan.target(desk)
    desk.say(f"Compiling a step for {command.target}; this takes minutes.", now=True)
    tree = desk.checkout.take(sha or f"refs/heads/{branch}", "tree")
    entry = entries_of(desk, "tree")[0]
    arguments = ["profile", str(tree), f"--entry={entry}", f"--target={command.target}", *desk.sandbox_option]
    ended = desk.command(arguments, name="profile")
    if ended.code not in (0, 1):
        raise NotPossible(f"The profile failed (exit code {ended.code}).\n\n{wording.block(ended.said)}")
    said = ended.output.read_text(encoding="utf-8", errors="replace").replace(str(desk.folder), "<run>")
    headline = f"Profile for {command.target}"
    return Outcome(result="done", headline=headline, text=f"**{headline}** (an estimate)\n\n{wording.block(said)}")
