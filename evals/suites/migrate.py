"""Suite `migrate`: every candidate on every task, held to the hidden checks."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from evals import results
from evals import task as tasks
from evals.candidates import candidates
from evals.candidates.answer import Answer, Limits
from evals.scorers.case import Runs
from evals.scorers.judge import Score, judge
from evals.suites.log import Log
from tools.errors import UserError
from tools.git import GitError

Pair = tuple[str, str]


def run(
    pairs: Iterable[Pair], log: Log, place: Path, limits: Limits, jobs: int, tell: Callable[[str], None]
) -> list[Score]:
    """Score candidates on tasks, each pair once for a revision of this project and of the task.

    Args:
        pairs: Task and candidate.
        log: Where scores are kept; those that are there already are not made again.
        place: Folder for checkouts and runs.
        limits: Interpreter, time and model.
        jobs: How many at once.
        tell: Takes a line for each score as it comes.

    Returns:
        A score for each pair, in their order.
    """
    wanted = list(pairs)
    revision, found = results.revision(), results.versions(limits.python)
    digests = {name: tasks.load(name).digest() for name, _ in wanted}
    known = {
        (score.task, score.candidate): score
        for score in map(Score.model_validate, log)
        if score.revision == revision and score.digest == digests.get(score.task) and score.kind != _AGAIN
    }
    todo = [pair for pair in wanted if pair not in known]
    if len(todo) < len(wanted):
        tell(f"{len(wanted) - len(todo)} of {len(wanted)} are in {log.path} already")
    originals: dict[str, Runs] = {name: {} for name, _ in todo}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(one, pair, place, limits, originals[pair[0]]): pair for pair in todo}
        for future in as_completed(running):
            score = future.result()
            score.date, score.revision, score.versions = results.today(), revision, found
            log.add(score.model_dump(mode="json"))
            known[running[future]] = score
            tell(line(score))
    return [known[pair] for pair in wanted]


_AGAIN = "infrastructure error"


def one(pair: Pair, place: Path, limits: Limits, originals: Runs) -> Score:
    """Score one candidate on one task; a fault of the harness is a kind of result, and no verdict."""
    task, name = tasks.load(pair[0]), pair[1]
    folder = place / f"{task.name}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start = time.monotonic()
    try:
        original = task.checkout(folder / "original")
        answer = candidates()[name].migrate(task, task.checkout(folder / task.name), folder, limits)
        seconds = time.monotonic() - start
        score = judge(task, name, answer, original, folder / "checks", limits, originals)
    except (OSError, subprocess.SubprocessError, GitError, UserError) as error:
        seconds = time.monotonic() - start
        score = judge(task, name, Answer(tree=None), folder, folder, limits, originals)
        score.kind, score.why = _AGAIN, f"{type(error).__name__}: {error}"
    score.seconds = round(seconds, 1)
    return score


def line(score: Score) -> str:
    """A score for people."""
    failed = [f"{check}: {why}" for check, (verdict, why) in score.checks.items() if verdict == "fail"]
    claims = f"  claims in vain: {', '.join(score.over_claims)}" if score.over_claims else ""
    return f"{score.task:<24} {score.candidate:<10} {score.kind:<9} {score.seconds:>5.0f} s  " + (
        "; ".join(failed) or score.why
    ) + claims  # fmt: skip


def validated(scores: Iterable[Score]) -> list[str]:
    """What is wrong with tasks: an original that passes, or a migration by hand that does not."""
    wrong = []
    for score in scores:
        if score.candidate == "reference" and score.kind != "pass":
            wrong.append(f"{score.task}: its reference migration: {line(score)}")
        if score.candidate == "unchanged" and (score.kind != "fail" or score.checks["device"][0] != "fail"):
            wrong.append(f"{score.task}: the unmodified source does not fail on the device: {line(score)}")
    return wrong


def published(scores: Iterable[Score]) -> list[dict[str, Any]]:
    """Scores as they are published, those of before put in the place of older ones."""
    known = {(old["task"], old["candidate"]): old for old in results.read("migrate")}
    for score in scores:
        known[score.task, score.candidate] = results.without_places(score.model_dump(mode="json"))
    names = set(tasks.names())
    return [record for (task, _), record in sorted(known.items()) if task in names]
