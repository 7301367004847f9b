"""Compares a pull request with its base: whether it still computes the same."""

from __future__ import annotations

import json

from agents.bot import findings as wording
from agents.bot.desk import Desk, NotPossible
from agents.bot.outcome import CheckPlan, Outcome
from agents.settings import read
from tools.errors import UserError


def verify(desk: Desk) -> Outcome:
    """`/torchtpu verify` on a pull request."""
    job = desk.job
    command = job.command
    assert command is not None
    if not job.is_pull:
        raise NotPossible("`verify` compares a pull request with its base: ask for it in a pull request.")
    desk.need_sandbox()
    pull = desk.place.send("GET", f"/pulls/{job.number}")
    head, base = str(pull["head"]["sha"]), str(pull["base"]["sha"])
    desk.say(f"Comparing {head[:12]} with {base[:12]}.", now=True)
    trees = desk.checkout.take(base, "base"), desk.checkout.take(head, "head")
    entries = entries_of(desk, "base")
    steps = command.verify_steps or desk.wishes.migrate.verify_steps
    ended = desk.command(
        [
            "verify", str(trees[0]), str(trees[1]), *(f"--entry={entry}" for entry in entries),
            *([f"--verify-steps={steps}"] if steps else []), "--json", f"--device={desk.settings.device}",
            *desk.sandbox_option,
        ],
        name="verify",
    )  # fmt: skip
    stages = _stages(ended.output.read_bytes())
    if stages is None:
        raise NotPossible(f"The comparison did not come to its end (exit code {ended.code}).\n\n{_said(ended.said)}")
    rows = [f"| {one['stage']} | {one['result']} | {wording.text(str(one['reason']))} |" for one in stages]
    table = "\n".join(["| stage | verdict | reason |", "|---|---|---|", *rows])
    failed = [str(one["stage"]) for one in stages if one["result"] == "fail"]
    passed = all(one["result"] == "pass" for one in stages)
    headline = f"Differs: {', '.join(failed)}" if failed else "Computes the same" if passed else "Not wholly compared"
    check = CheckPlan(
        sha=head, name="torchtpu verify", conclusion="failure" if failed else "success" if passed else "neutral",
        title=headline, summary=table, external=job.run,
    )  # fmt: skip
    return Outcome(result="done", headline=headline, text=f"**{headline}**: {head[:12]}\n\n{table}", check=check)


def entries_of(desk: Desk, name: str) -> list[str]:
    """The commands to run: the comment's, else the repository's settings', else `torchtpu.toml` of a tree.

    Raises:
        NotPossible: Nobody names one.
    """
    command = desk.job.command
    named = (command.entries if command else []) or desk.wishes.migrate.entry
    try:
        entries = named or read(desk.path(name)).entry
    except UserError as error:
        raise NotPossible(f"{error.message} {error.remedy}") from error
    if not entries:
        raise NotPossible('Nothing says what to run. Add `--entry "python train.py"`, or `entry` to `torchtpu.toml`.')
    return entries


def _stages(output: bytes) -> list[dict[str, object]] | None:
    try:
        found = json.loads(output)
    except ValueError:
        return None
    stages = found.get("stages") if isinstance(found, dict) else None
    return stages if isinstance(stages, list) else None


def _said(said: str) -> str:
    return wording.block(said) if said else ""
