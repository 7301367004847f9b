"""The page of suite `migrate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evals.rates import wilson
from evals.scorers.judge import CHECKS, Score

_WHO = {
    "ours": "`torchtpu-agent migrate`, with no language model",
    "textual": "every `cuda` in the source replaced by `tpu`",
    "shim": "`torch.cuda` an alias of the TPU at run time, source as it is",
    "reference": "the migration by hand that comes with the task",
    "unchanged": "the source as it is",
}
_JUDGED = ("ours", "textual", "shim")


def page(scores: Sequence[Score]) -> str:
    """Rates of each candidate, then every task."""
    tasks = sorted({score.task for score in scores})
    lines = [
        "# Migrations scored by hidden checks",
        "",
        "<!-- Made by `make evals` from migrate.json. -->",
        "",
        f"{len(tasks)} tasks, each a small CUDA repository written for this suite. A task's checks and its migration "
        "by hand lie outside of what a candidate sees. Rates are with 95 % Wilson intervals; a claim counts as vain "
        "where the checks behind it fail.",
        "",
        "| candidate | what it is | all checks | runs | trains | CUDA, CPU and tests kept | vain claims "
        "| holds, not claimed | no answer | infrastructure | lines changed, against by hand | seconds, median |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_candidate(name, [s for s in scores if s.candidate == name]) for name in _WHO]
    lines += [
        "",
        "## Every task",
        "",
        f"| task | difficulty | {' | '.join(_JUDGED)} |",
        "|---|---|" + "---|" * len(_JUDGED),
    ]
    lines += [_task(name, scores) for name in tasks]
    lines += ["", "## What failed", ""]
    lines += [_failure(score) for score in scores if score.candidate in _JUDGED and score.kind != "pass"] or [
        "Nothing."
    ]
    lines += ["", "## By whom judged", "", *sorted({_conditions(score) for score in scores})]
    return "\n".join(lines) + "\n"


def _candidate(name: str, scores: Sequence[Score]) -> str:
    if not scores:
        return f"| {name} | {_WHO[name]} | not run |" + " |" * 9
    judged = [score for score in scores if score.kind != "infrastructure error"]
    compared = [s for s in judged if s.changed is not None and s.reference]
    size = f"{sum(s.changed or 0 for s in compared)} to {sum(s.reference or 0 for s in compared)}" if compared else "-"
    seconds = sorted(score.seconds for score in scores)[len(scores) // 2]
    return (
        f"| {name} | {_WHO[name]} | {_rate(judged, lambda s: s.kind == 'pass')} "
        f"| {_rate(judged, lambda s: s.reached('runs'))} | {_rate(judged, lambda s: s.reached('trains'))} "
        f"| {_rate(judged, lambda s: s.reached('preserves'))} "
        f"| {sum(len(s.over_claims) for s in judged)} of {sum(len(s.claims) for s in judged)} "
        f"| {sum(len(s.under_claims) for s in judged)} | {sum(s.kind == 'no answer' for s in judged)} "
        f"| {len(scores) - len(judged)} | {size} | {seconds:.0f} |"
    )


def _rate(scores: Sequence[Score], holds: Callable[[Score], bool]) -> str:
    right = sum(map(holds, scores))
    low, high = wilson(right, len(scores))
    return f"{right}/{len(scores)} ({100 * low:.0f} to {100 * high:.0f} %)"


def _task(name: str, scores: Iterable[Score]) -> str:
    own = {score.candidate: score for score in scores if score.task == name}
    difficulty = next(iter(own.values())).difficulty
    return f"| {name} | {difficulty} | " + " | ".join(_cell(own.get(candidate)) for candidate in _JUDGED) + " |"


def _cell(score: Score | None) -> str:
    if score is None:
        return "not run"
    failed = [check for check in CHECKS if score.checks.get(check, ("", ""))[0] == "fail"]
    return score.kind + (f": {', '.join(failed)}" if failed else "")


def _failure(score: Score) -> str:
    said = [f"{check}: {why}" for check, (verdict, why) in score.checks.items() if verdict == "fail"]
    vain = f" (claimed: {', '.join(score.over_claims)})" if score.over_claims else ""
    return f"- {score.task}, {score.candidate}: {score.kind}; {'; '.join(said) or score.why}{vain}"


def _conditions(score: Score) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in score.versions.items())
    return f"- {score.date}, revision `{score.revision}`; {versions}"
