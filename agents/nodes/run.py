"""Runs the entries on the device, in a disposable copy of the migrated tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.runtime import Runtime

from agents import import_paths, workspace
from agents.context import Context
from agents.runs import write_whole
from agents.state import Entry, RunRecord, State
from tools import commands
from tools import run as runner
from tools.wording import amount


def run(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Run setup and entries; a dry run and a repository without an entry run nothing."""
    context = runtime.context
    if state.request.dry_run or not state.entries:
        return {}
    prepare(state, context)
    records = []
    for number, entry in enumerate(state.entries, 1):
        record = run_entry(entry, f"run-{state.attempt}-{number}", state, context)
        context.progress.done("run", summary(record))
        records.append(record)
    return {"runs": [*state.runs, *records]}


def prepare(state: State, context: Context) -> None:
    """Make the run folder and do the setup commands in it."""
    context.progress.working("run", "copying files")
    overlay = copy_into(context.folder.work, context.folder.tree, state)
    for note in overlay.notes:
        context.progress.note(note)
    for number, text in enumerate(state.settings.setup, 1):
        _setup(text, f"setup-{number}", state, context)


def copy_into(work: Path, tree: Path, state: State) -> workspace.Overlay:
    """Make a folder to run in, of a tree's files and the user's data."""
    source = state.origin
    links = state.request.sandbox and runner.sandbox_available()
    return workspace.build(tree, source.data, work, links=links, left_out=source.modified)


def _setup(text: str, name: str, state: State, context: Context) -> None:
    context.progress.working("setup", text)
    request = request_for(text, name, state, context).model_copy(update={"device": "cpu", "steps": None})
    workspace.set_up(text, request, on_output=context.progress.output)


def request_for(text: str, name: str, state: State, context: Context) -> runner.RunRequest:
    """How a command is run in the folder that was prepared; its log is `name`.log."""
    log = context.folder.path / f"{name}.log"
    return request_in(context.folder.work, text, log, state).model_copy(update={"verbose": context.verbose})


def request_in(work: Path, text: str, log: Path, state: State) -> runner.RunRequest:
    """How a command is run in a folder made by `copy_into`."""
    request = state.request
    return runner.RunRequest(
        command=commands.parse(text).importing(import_paths.within(work, state.import_paths)),
        cwd=work / state.origin.scope,
        device=request.device,
        python=Path(request.python) if request.python else None,
        steps=state.settings.steps,
        timeout=state.settings.timeout,
        idle_timeout=state.settings.idle_timeout,
        memory=state.settings.memory,
        sandbox=request.sandbox,
        writable=[work],
        numerics=request.numerics,
        log=log,
    )


def run_entry(entry: Entry, name: str, state: State, context: Context) -> RunRecord:
    """Run one entry in the folder that was prepared, and keep its result as `name`.json."""
    request = request_for(entry.command, name, state, context)
    teller = _Teller(context, entry)
    context.progress.working("run", entry.command)
    output = runner.run(request, on_event=teller.event, on_output=context.progress.output)
    result = context.folder.path / f"{name}.json"
    write_whole(result, output.model_dump_json(indent=1))
    known = output.model_dump(include=set(RunRecord.model_fields) - {"entry", "attempt", "result", "command"})
    return RunRecord(
        **known,
        entry=entry.command,
        attempt=state.attempt,
        result=str(result),
        command=runner.command_line(request),
    )


class _Teller:
    """Turns events of the program into a moving line."""

    def __init__(self, context: Context, entry: Entry) -> None:
        self._context = context
        self._entry = entry

    def event(self, event: Any) -> None:
        """Show a step with its loss."""
        if event.event == "step":
            loss = event.data.get("loss")
            text = f"step {event.data.get('step', '?')}" + (f", loss {loss:.4g}" if loss is not None else "")
            self._context.progress.working("run", f"{text}  ({self._entry.command})")


def summary(record: RunRecord) -> str:
    """One line for a person: steps, device, losses, seconds; or why it did not get there."""
    if not record.ended_well:
        return record.explanation
    where = str((record.device or {}).get("kind", "no device"))
    parts = [f"{amount(record.steps, 'step')} on {'tpu:0' if record.device_steps else where}"]
    if not record.steps:
        parts = [f"ended on {where}"]
    if record.losses:
        parts.append(f"loss {record.losses[0]:.4g} -> {record.losses[-1]:.4g}")
    return ", ".join([*parts, f"{record.duration:.0f} s"])
