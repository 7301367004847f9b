"""Scans a commit, or what a change adds to it. Nothing of the repository is run."""

from __future__ import annotations

from pathlib import Path

from agents.bot import findings as wording
from agents.bot.desk import Desk, NotPossible
from agents.bot.outcome import CheckPlan, Conclusion, Outcome, SarifPlan
from tools.findings import Finding, ScanResult
from tools.formats import render
from tools.wording import amount

_MOST_SARIF = 5_000_000


def of_command(desk: Desk) -> Outcome:
    """`/torchtpu scan`: of the pull request's head, or of the default branch."""
    sha, ref, branch = target(desk)
    desk.say("Scanning.", now=True)
    result = examine(desk, desk.checkout.take(sha or f"refs/heads/{branch}", "tree"), "scan")
    at = head_of(desk, "tree")
    found = [*wording.serious(result.findings), *_advice(result)]
    keep(desk, at, f"scan of {at[:12]}", found)
    serious = len(wording.serious(found))
    headline = f"{amount(serious, 'place')} to change, {amount(len(found) - serious, 'piece')} of advice"
    text = f"**{headline}** at {at[:12]} ({amount(result.files, 'file')}).\n\n{wording.listed(found)}"
    if found:
        text += "\n\n`/torchtpu explain N` says why, `/torchtpu fix N` fixes one."
    check = CheckPlan(
        sha=at, name="torchtpu scan", conclusion="neutral" if serious else "success", title=headline, summary=headline,
        annotations=wording.as_annotations(found), external=desk.job.run,
    )  # fmt: skip
    return Outcome(result="done", headline=headline, text=text, check=check, sarif=sarif(desk, result, at, ref))


def of_change(desk: Desk) -> Outcome:
    """A pull request: whether it keeps the repository ready for TPUs."""
    job = desk.job
    assert job.sha and job.base
    head = examine(desk, desk.checkout.take(job.sha, "head"), "head")
    base = examine(desk, desk.checkout.take(job.base, "base"), "base")
    fresh = wording.added(head.findings, base.findings)
    serious = wording.serious(fresh)
    gone = len(wording.serious(wording.added(base.findings, head.findings)))
    left = len(wording.serious(head.findings)) - len(serious)
    title = _title(len(serious), left)
    summary = f"{title}.\n\n{_counts(len(serious), gone, left)}\n\n{wording.listed([*serious, *_only_advice(fresh)])}"
    keep(desk, job.sha, title, [*serious, *_only_advice(fresh)])
    bad: Conclusion = "failure" if desk.wishes.pull_requests.fail else "neutral"
    check = CheckPlan(
        sha=job.sha, name="torchtpu", conclusion=bad if serious else "success", title=title, summary=summary,
        annotations=wording.as_annotations(fresh), external=job.run if job.again else f"change:{job.number}",
    )  # fmt: skip
    uploaded = None if job.fork else sarif(desk, head, job.sha, f"refs/pull/{job.number}/head")
    return Outcome(result="done", headline=title, check=check, sarif=uploaded)


def of_push(desk: Desk) -> Outcome:
    """A commit of the default branch."""
    job = desk.job
    assert job.sha
    result = examine(desk, desk.checkout.take(job.sha, "tree"), "scan")
    found = wording.serious(result.findings)
    title = "The repository is TPU-ready" if not found else f"{amount(len(found), 'place')} to change"
    check = CheckPlan(
        sha=job.sha, name="torchtpu", conclusion="neutral" if found else "success", title=title,
        summary=f"{title}.\n\n{wording.listed(found)}", annotations=wording.as_annotations(found),
        external=job.run if job.again else "push",
    )  # fmt: skip
    ref = f"refs/heads/{job.branch}"
    return Outcome(result="done", headline=title, check=check, sarif=sarif(desk, result, job.sha, ref))


def target(desk: Desk) -> tuple[str | None, str, str]:
    """The commit that a command is about if it is known, its ref, and its branch."""
    job = desk.job
    if job.is_pull:
        pull = desk.place.send("GET", f"/pulls/{job.number}")
        return str(pull["head"]["sha"]), f"refs/pull/{job.number}/head", str(pull["head"]["ref"])
    branch = str(desk.place.send("GET", "")["default_branch"])
    return None, f"refs/heads/{branch}", branch


def head_of(desk: Desk, name: str) -> str:
    """The commit that is checked out in a folder of the job."""
    from tools.git import run_git

    return run_git(desk.path(name), "rev-parse", "HEAD", private=True).decode().strip()


def examine(desk: Desk, tree: Path, name: str) -> ScanResult:
    """Scan a folder, in a child."""
    command = desk.job.command
    chosen = [*(command.select if command else []), *desk.wishes.migrate.select][:50]
    left_out = [*(command.ignore if command else []), *desk.wishes.migrate.ignore][:50]
    options = [f"--select={code}" for code in chosen] + [f"--ignore={code}" for code in left_out]
    ended = desk.command(["scan", str(tree), "--format", "json", "--exit-zero", "--jobs=1", *options], name=name)
    if ended.code != 0:
        raise NotPossible(f"The scan failed.\n\n{wording.block(ended.said)}")
    return ScanResult.model_validate_json(ended.output.read_bytes())


def keep(desk: Desk, sha: str, summary: str, found: list[Finding]) -> None:
    """Keep findings for `explain` and `fix` in the same thread."""
    if desk.job.number:
        desk.store.keep_findings(
            desk.job, sha, summary, [finding.model_dump(mode="json") for finding in found[: wording.MOST_ANNOTATIONS]]
        )


def sarif(desk: Desk, result: ScanResult, sha: str, ref: str) -> SarifPlan | None:
    """The findings for code scanning, where the repository wants them there."""
    document = render(result.model_copy(update={"root": "."}), "sarif")
    if not desk.wishes.sarif or len(document) > _MOST_SARIF:
        return None
    return SarifPlan(sha=sha, ref=ref, document=document)


def _advice(result: ScanResult) -> list[Finding]:
    return _only_advice(result.findings)


def _only_advice(found: list[Finding]) -> list[Finding]:
    serious = wording.serious(found)
    return [finding for finding in found if finding not in serious]


def _title(fresh: int, left: int) -> str:
    if fresh:
        return f"The change adds {amount(fresh, 'place')} that a TPU cannot take"
    return "The change keeps the repository TPU-ready" if not left else "The change adds nothing that a TPU cannot take"


def _counts(fresh: int, gone: int, left: int) -> str:
    return f"| added | removed | there before |\n|---:|---:|---:|\n| {fresh} | {gone} | {left} |"
