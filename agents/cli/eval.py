"""`torchtpu-agent eval`: score migrations on the tasks that come with this project, beside other ways to migrate."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from agents.cli import options
from agents.cli.common import guarded
from agents.cli.output import echo, print_json
from tools.errors import Exit, UserError

app = typer.Typer(
    help="Score migrations on a fixed suite of tasks, and check the tasks themselves.", no_args_is_help=True
)

_OUT = "Folder for checkouts, runs and the log; a second call goes on with it."
_TASKS = "Names of tasks; without any, all of them."

Tasks = Annotated[list[str] | None, typer.Argument(help=_TASKS, metavar="[TASK]...")]
Out = Annotated[Path, typer.Option("--out", help=_OUT)]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="How many at once; each takes a core and 1 to 2 GB.")]
Python = Annotated[Path | None, typer.Option("--python", help="Interpreter of the programs.")]
Timeout = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for one run of a program.")]


def _evals(module: str) -> Any:
    # The suites stand above this room and call it; by their names alone nothing here rests on them.
    return import_module(f"evals.{module}")


@app.command("tasks")
@guarded
def list_tasks(json_output: options.Json = False) -> None:
    """List the tasks: name, difficulty, what it is."""
    tasks = _evals("task")
    found = [tasks.load(name) for name in tasks.names()]
    if json_output:
        print_json([task.model_dump(mode="json", exclude={"folder"}) for task in found])
        return
    for task in found:
        echo(f"{task.name:<24} {task.difficulty:<7} {task.title}")


@app.command("migrate")
@guarded
def score(
    names: Tasks = None,
    candidate: Annotated[
        list[str] | None, typer.Option("--candidate", "-c", help="Who migrates; may be given several times.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Language model for what rules leave.")] = "",
    publish: Annotated[bool, typer.Option("--publish", help="Put the scores into evals/results too.")] = False,
    out: Out = Path("out/evals/migrate"),
    jobs: Jobs = 1,
    python: Python = None,
    timeout: Timeout = 300.0,
    json_output: options.Json = False,
) -> Exit | None:
    """Migrate tasks by candidates and hold the results to hidden checks.

    Candidates: ours (this tool), textual (cuda becomes tpu in the text), shim (torch.cuda is an alias at run time),
    reference (the migration by hand), unchanged. Ends with 1 where ours fails a check or claims in vain.

    For example:

        torchtpu-agent eval migrate chargpt

        torchtpu-agent eval migrate --candidate ours --candidate textual --jobs 2 --publish
    """
    scores = _scored(names, candidate or ["ours", "textual", "shim"], out, jobs, python, timeout, model)
    if json_output:
        print_json([one.model_dump(mode="json") for one in scores])
    if publish:
        suite = _evals("suites.migrate")
        records = suite.published(scores)
        made = _evals("suites.migrate_page").page([_evals("scorers.judge").Score.model_validate(r) for r in records])
        _evals("results").publish("migrate", records, made)
    ours = [one for one in scores if one.candidate == "ours"]
    return Exit.FAILED if any(one.kind != "pass" or one.over_claims for one in ours) else None


@app.command("validate")
@guarded
def validate(
    names: Tasks = None,
    out: Out = Path("out/evals/validate"),
    jobs: Jobs = 1,
    python: Python = None,
    timeout: Timeout = 300.0,
) -> Exit | None:
    """Check the tasks: the unmodified source fails on the device, and the migration by hand passes every check."""
    scores = _scored(names, ["unchanged", "reference"], out, jobs, python, timeout, "")
    wrong = _evals("suites.migrate").validated(scores)
    for text in wrong:
        echo(text)
    echo(f"{len({one.task for one in scores})} tasks looked at, {len(wrong)} faults")
    return Exit.FAILED if wrong else None


def _scored(
    names: list[str] | None, who: list[str], out: Path, jobs: int, python: Path | None, timeout: float, model: str
) -> list[Any]:
    known, ways = _evals("task").names(), _evals("candidates").candidates()
    for given, there, kind in ((names or [], known, "task"), (who, list(ways), "candidate")):
        for name in given:
            if name not in there:
                raise UserError(f"There is no {kind} '{name}'.", f"There are: {', '.join(there)}.")
    answer = _evals("candidates.answer")
    limits = answer.Limits(python=python or Path(sys.executable), timeout=timeout, model=model)
    log = _evals("suites.log").Log(out / "log.jsonl")
    pairs = [(task, one) for task in names or known for one in who]
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    scores: list[Any] = _evals("suites.migrate").run(
        pairs, log, out.resolve(), limits, jobs, lambda said: typer.echo(said, err=True)
    )
    return scores
