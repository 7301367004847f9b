"""`torchtpu-agent knowledge`: what is known of failures, looked up and checked by execution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded, interpreter
from agents.cli.output import echo, print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from tools.knowledge import Entry

app = typer.Typer(help="List, show, search and check what is known of failures.", no_args_is_help=True)
_LIMIT = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="Most hits.")]


@app.command("list")
@guarded
def list_entries(json_output: options.Json = False) -> Exit | None:
    """List all entries: id, whose the failure is, what its probe came to here, title.

    `source` is public text only; `probe` has a program that shows it and was not run here yet.
    """
    from tools.knowledge import entries

    if json_output:
        print_json([{**entry.model_dump(mode="json"), "standing": _standing(entry)} for entry in entries()])
        return None
    for entry in entries():
        echo(f"{entry.id:<26}  {entry.owner:<11}  {_standing(entry):<15}  {entry.title}")
    return None


def _standing(entry: Entry) -> str:
    from agents.knowledge_store import records

    record = records().get(entry.id)
    if record is not None:
        return str(record.standing)
    return "probe" if entry.probe else "source"


@app.command("show")
@guarded
def show_entry(
    entry_id: Annotated[str, typer.Argument(help="An entry's id.", metavar="ENTRY")],
    json_output: options.Json = False,
) -> Exit | None:
    """Show one entry: symptoms, cause, remedy, rules, sources, probe, and what the probe came to here."""
    from agents.knowledge_store import records

    entry, record = _find(entry_id), records().get(entry_id)
    if json_output:
        said = record.model_dump(mode="json") if record else None
        print_json({**entry.model_dump(mode="json"), "record": said})
        return None
    lines = [f"{entry.id}: {entry.title}", "", f"owner    {entry.owner}"]
    for symptom in entry.symptoms:
        lines.append("symptom  " + ", ".join(f"{place}: {pattern}" for place, pattern in symptom.places().items()))
    lines += [f"cause    {entry.cause}", f"remedy   {entry.remedy}"]
    lines += [f"rules    {', '.join(entry.rules)}"] if entry.rules else []
    lines += [f"versions {entry.versions}"] if entry.versions else []
    lines += [f"source   {source}" for source in entry.sources]
    lines += ["", "probe", *(f"    {line}" for line in entry.probe.splitlines())] if entry.probe else []
    lines += [f"checked  {record.standing}: {record.said}"] if record else []
    echo("\n".join(lines))
    return None


def _find(entry_id: str) -> Entry:
    from tools.knowledge import entries
    from tools.search import search

    found = next((entry for entry in entries() if entry.id == entry_id), None)
    if found is None:
        near = [hit.id for hit in search(entry_id, 3, rules=False).hits]
        remedy = f"Did you mean {' or '.join(near)}?" if near else "List them with: torchtpu-agent knowledge list"
        raise UserError(f"There is no entry {entry_id}.", remedy)
    return found


@app.command("search")
@guarded
def search_entries(
    words: Annotated[list[str], typer.Argument(help="Words, or a message in quotes.", metavar="WORDS...")],
    limit: _LIMIT = 5,
    json_output: options.Json = False,
) -> Exit | None:
    """Find entries and rules by plain words. Exit code 1 where nothing has any of them."""
    from tools.search import search

    found = search(" ".join(words), limit)
    if json_output:
        print_json(found.model_dump(mode="json"))
    for hit in [] if json_output else found.hits:
        echo(f"{hit.score:.2f}  {hit.id:<26}  {hit.title}")
    if not found.hits and not json_output:
        echo("Nothing has these words.", err=True)
    return None if found.hits else Exit.FAILED


@app.command("verify")
@guarded
def verify_entries(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Entries. Default: all that have a probe.", metavar="ENTRY...")
    ] = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    no_sandbox: options.NoSandbox = False,
    json_output: options.Json = False,
) -> Exit | None:
    """Run the probes, each in a child of its own with a time limit, and mark entries that no longer hold.

    The marks are kept in the state directory: `diagnose` and `chat` rank a marked entry behind the others and say so.
    A probe takes some seconds.

    Exit codes: 0 all that ran hold; 1 some no longer do; 2 wrong usage; 3 none could be run here; 4 interrupted.
    """
    from agents.knowledge_store import keep
    from tools.knowledge import entries
    from tools.probes import SECONDS, ProbeRecord, Standing, probe

    chosen = [_find(name) for name in ids] if ids else [entry for entry in entries() if entry.probe]
    found = interpreter(python)
    made: list[ProbeRecord] = []
    for number, entry in enumerate(chosen, 1):
        record = probe(entry, device.value, Path(found) if found else None, timeout or SECONDS, not no_sandbox)
        made.append(record)
        keep([record])
        if not json_output:
            line = f"{number:>3}/{len(chosen)}  {entry.id:<26}  {record.standing:<15}  {record.seconds:.0f} s"
            console().print(f"{line}  {record.said}", highlight=False, markup=False, soft_wrap=True)
    count = {standing: sum(record.standing is standing for record in made) for standing in Standing}
    if json_output:
        print_json({"probes": [record.model_dump(mode="json") for record in made]})
    else:
        echo(", ".join(f"{number} {standing}" for standing, number in count.items()))
    if count[Standing.NO_LONGER]:
        return Exit.FAILED
    return Exit.PASSED if count[Standing.HOLDS] else Exit.ENVIRONMENT
