"""Tool: the program on the device."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.diagnosis import explain
from agents.nodes.run import prepare, run_entry, summary
from agents.stages.runs import runs
from agents.state import Entry
from agents.toolkit.base import Effect, Tool, ToolError, ToolResult, shortened
from agents.toolkit.bench import Bench
from tools.commands import missing_script, named_files, parse

_TAIL = 4000


class Input(BaseModel):
    """Arguments."""

    command: str = Field(default="", description="such as 'python train.py --steps 5'; empty for the usual one")


def run_program(arguments: Input, bench: Bench) -> ToolResult:
    """Run the program on the TPU or simulated device, in a disposable copy, and say how it ended and why."""
    entry = entry_for(arguments.command, bench)
    # What a model tries besides does not become what the program is judged by.
    bench.update(entries=bench.state.entries or [entry], attempt=bench.state.attempt + 1)
    prepare(bench.state, bench.context)
    record = run_entry(entry, f"{bench.runs}-{bench.state.attempt}-1", bench.state, bench.context)
    found = [] if record.ended_well else [explain(record, bench.root)]
    bench.update(runs=[*bench.state.runs, record], diagnoses=[*bench.state.diagnoses, *found])
    bench.mark_run()
    verdict = runs(bench.state, bench.context)
    lines = [f"{entry.command}: {summary(record)}", f"stage runs: {verdict.result}: {verdict.reason}"]
    for diagnosis in found:
        lines += [f"cause ({diagnosis.owner}): {diagnosis.cause}", f"remedy: {diagnosis.remedy}"]
        lines += [f"rules: {', '.join(diagnosis.rules)}"] if diagnosis.rules else []
    if found and record.log:
        lines += ["end of its output:", _tail(record.log)]
    data = {
        "outcome": record.outcome,
        "stage": verdict.result.value,
        "steps": record.steps,
        "losses": record.losses[-5:],
    }
    return ToolResult(text=shortened("\n".join(lines)), data=data, evidence=True, ok=verdict.result == "pass")


def entry_for(text: str, bench: Bench) -> Entry:
    """The command as an entry: the usual one, or one that starts a file of the repository.

    Raises:
        ToolError: It is none of these.
    """
    if not text.strip():
        if not bench.state.entries:
            raise ToolError("No command is known; give one such as 'python train.py'.")
        return bench.state.entries[0]
    known = next((entry for entry in bench.state.entries if entry.command == text.strip()), None)
    if known is not None:
        return known
    command = parse(text)
    scripts = named_files(command, bench.root)
    if bench.only_entries:
        raise ToolError("Without a sandbox only commands that the user gave may be run.")
    if command.is_shell or not command.is_python or missing_script(command, bench.root) or not scripts:
        raise ToolError(f"'{text}' does not start a Python file of the repository.")
    return Entry(command=text.strip(), origin="chat", why="given", scripts=scripts)


def _tail(log: str) -> str:
    from pathlib import Path

    return Path(log).read_bytes()[-_TAIL:].decode("utf-8", "replace")


TOOL = Tool("run_program", Input, run_program, lambda _arguments: Effect.RUN)
