"""Migrates a repository in a child and pushes the branch; the pull request is written afterwards."""

from __future__ import annotations

from agents import runs
from agents.bot import findings as wording
from agents.bot.desk import Desk, NotPossible
from agents.bot.outcome import CheckPlan, Conclusion, Outcome, PullPlan
from agents.bot.tasks import scan
from agents.record import lines_of
from agents.report.model import Report
from agents.runs import RunFolder
from agents.state import Request, Result
from tools.errors import Exit, UserError
from tools.findings import Finding, Grade
from tools.wording import amount

_SHOWN = 14


def migrate(desk: Desk) -> Outcome:
    """`/torchtpu migrate`: the default branch, on a branch of ours."""
    if desk.fork:
        raise NotPossible("This pull request comes from a fork, where no branch can be pushed. Ask in an issue.")
    desk.need_sandbox()
    desk.say("Cloning.", now=True)
    folder = _run_folder(desk)
    ended = desk.command(
        ["migrate", "--resume", folder.id, "--json", "--yes"], tick=lambda: desk.say(progress(folder)), name="migrate"
    )
    if not folder.report_json.is_file():
        raise NotPossible(f"The migration did not come to its end (exit code {ended.code}).\n\n{_why(ended.said)}")
    return _outcome(desk, folder, Report.model_validate_json(folder.report_json.read_bytes()))


def _run_folder(desk: Desk) -> RunFolder:
    """The job's run: a new one, or the one that an earlier worker on this machine began."""
    job = desk.job
    try:
        folder = runs.find(job.run)
    except UserError:
        pass
    else:
        while folder.is_held():  # the child of a worker that was killed puts it down
            desk.place.app.bell.wait(0.2)
        if (desk.folder / "source" / ".git").is_dir() and folder.card.status != "failed":
            return folder
        runs.delete(folder)
    _, _, branch = scan.target(desk)
    source = desk.checkout.take(f"refs/heads/{branch}", "source", branch)
    folder = runs.named(job.run, _request(desk, str(source)))
    folder.update(source=job.place)
    return folder


def _request(desk: Desk, source: str) -> Request:
    command, wishes = desk.job.command, desk.wishes.migrate
    assert command is not None
    return Request(
        source=source,
        created=runs.now(),
        entries=command.entries or wishes.entry,
        device=desk.settings.device,
        steps=command.steps if command.steps is not None else wishes.steps,
        unsafe_fixes=command.unsafe_fixes or wishes.unsafe_fixes,
        select=command.select or wishes.select,
        ignore=[*command.ignore, *wishes.ignore],
        branch=branch_of(desk),
        dry_run=command.dry_run,
        verify=command.verify and wishes.verify,
        verify_steps=command.verify_steps or wishes.verify_steps,
        target=_target(command.target or wishes.target),
        sandbox=not desk.sandbox_option,
    )


def _target(name: str | None) -> str | None:
    from tools.profile import target_named

    return target_named(name).name if name else None


def branch_of(desk: Desk) -> str:
    """The job's branch; its name is the mark by which it is found again."""
    return f"torchtpu/migrate-{desk.job.run}"


def progress(folder: RunFolder) -> str:
    """How far a run is, from what it wrote down."""
    lines = lines_of(folder.path)
    done = [f"- {line.stage}: {wording.text(line.text)}" for line in lines if line.kind == "done"]
    now = [f"- {line.stage}: {wording.text(line.text)} ..." for line in lines[-1:] if line.kind == "working"]
    return "\n".join([*done[-_SHOWN:], *now]) or "Starting."


def _why(said: str) -> str:
    return wording.block(said) if said else ""


def _outcome(desk: Desk, folder: RunFolder, report: Report) -> Outcome:
    left = [_finding(item.model_dump()) for item in report.left]
    scan.keep(desk, report.base, f"migration {report.run}: {report.headline}", left)
    headline = _headline(report)
    text = f"**{headline}**\n\n{_stages(report)}\n{desk.run_link}"
    branch = report.delivery.branch
    if branch is None or report.delivery.tip is None:
        return Outcome(result="done", headline=headline, text=f"{text}\n{wording.text(report.delivery.note)}")
    tip, base = report.delivery.tip, scan.target(desk)[2]
    desk.checkout.push(desk.path("source"), tip, branch)
    title = f"Run on TPU: {amount(sum(c.findings for c in report.commits), 'place')} changed by {_rules(report)}"
    body = _body(desk, folder, headline)
    check = CheckPlan(
        sha=tip, name="torchtpu migration", conclusion=_conclusion(report), title=headline,
        summary=f"{headline}\n\n{_stages(report)}", annotations=wording.as_annotations(left), external=desk.job.run,
    )  # fmt: skip
    pull = PullPlan(branch=branch, base=base, title=title, text=body)
    return Outcome(result="done", headline=headline, text=text, pull=pull, check=check)


def _headline(report: Report) -> str:
    failed = [verdict.stage for verdict in report.verdicts if verdict.result is Result.FAIL]
    reached = "no stage passed" if report.headline == "none" else f"every stage up to {report.headline} passed"
    return f"Migration: {reached}{f'; failed: {chr(44).join(failed)}' if failed else ''}"


def _rules(report: Report) -> str:
    return amount(len({commit.rule for commit in report.commits}), "rule")


def _stages(report: Report) -> str:
    rows = [f"| {one.stage} | {one.result} | {wording.text(one.reason)} |" for one in report.verdicts]
    return "\n".join(["| stage | verdict | reason |", "|---|---|---|", *rows, ""])


def _conclusion(report: Report) -> Conclusion:
    if report.exit_code == Exit.FAILED:
        return "failure"
    whole = all(verdict.result is Result.PASS for verdict in report.verdicts)
    # A stage that did not run proves nothing.
    return "success" if whole else "neutral"


def _body(desk: Desk, folder: RunFolder, headline: str) -> str:
    asked = f"Asked for by {desk.job.sender} in #{desk.job.number}. One commit a rule.\n{desk.run_link}"
    report = folder.report.read_text(encoding="utf-8").replace("@", "@\u200b")
    for path in (str(folder.path), str(desk.folder)):
        report = report.replace(path, "<run>")
    return f"{headline}.\n\n{asked}\n{report}"


def _finding(left: dict[str, object]) -> Finding:
    line = left["line"]
    return Finding.model_validate(
        {
            **{name: left[name] for name in ("rule", "path", "message", "source", "note", "cell", "line")},
            "grade": Grade(str(left["grade"])),
            "family": "",
            "column": 1,
            "end_line": line,
            "end_column": 1,
            "fixable": False,
        }
    )
