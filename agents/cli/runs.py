"""`torchtpu-agent runs`: the migrations that were done, their reports, and their removal."""

from __future__ import annotations

from typing import Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded
from agents.cli.output import echo, print_json
from tools.errors import Exit

app = typer.Typer(
    help="List, show and delete runs. They live under the state directory (TORCHTPU_HOME moves it).",
    no_args_is_help=True,
)
RunId = Annotated[str, typer.Argument(help="A run's id, as in `runs list`.", metavar="RUN")]


@app.command("list")
@guarded
def list_runs(json_output: options.Json = False) -> Exit | None:
    """List all runs, oldest first: id, when, status, highest stage passed, source."""
    from agents import runs

    cards = [folder.card.model_copy(update={"status": runs.status(folder)}) for folder in runs.every()]
    if json_output:
        print_json([card.model_dump(mode="json") for card in cards])
        return None
    for card in cards:
        echo(f"{card.id}  {card.created}  {card.status:<11}  {card.headline or '-':<9}  {card.source}")
    if not cards:
        echo(f"There are no runs in {runs.home() / 'runs'}.", err=True)
    return None


@app.command("show")
@guarded
def show_run(run_id: RunId, json_output: options.Json = False) -> Exit | None:
    """Print a run's report, or how far it came."""
    from agents import runs

    folder = runs.find(run_id)
    if json_output:
        echo(
            folder.report_json.read_text(encoding="utf-8")
            if folder.report_json.exists()
            else folder.card.model_copy(update={"status": runs.status(folder)}).model_dump_json(indent=1)
        )
    elif folder.report.exists():
        text = folder.report.read_text(encoding="utf-8")
        out = console()
        if out.is_terminal:
            from rich.markdown import Markdown

            out.print(Markdown(text))
        else:
            echo(text)
    else:
        echo(f"Run {folder.id} of {folder.card.source} has no report yet: {runs.status(folder)}.")
        echo(f"Go on with: torchtpu-agent {folder.command} --resume {folder.id}")
    return None


@app.command("delete")
@guarded
def delete_runs(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of runs.", metavar="RUN...")],
    json_output: options.Json = False,
) -> Exit | None:
    """Delete runs with their private trees, logs and reports. Branches that were handed over stay."""
    from agents import runs

    run_ids = list(dict.fromkeys(run_ids))
    folders = [runs.find(run_id, damaged=True) for run_id in run_ids]
    for folder in folders:
        runs.delete(folder)
    if json_output:
        print_json({"deleted": run_ids})
    else:
        echo(f"deleted {', '.join(run_ids)}")
    return None


@app.command("schema")
@guarded
def schema() -> Exit | None:
    """Print the JSON schema of a report."""
    from agents.report.model import schema_text

    echo(schema_text(), nl=False)
    return None
