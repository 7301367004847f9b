"""`torchtpu-agent trace`: what a program ran on the device, what made it wait, what was compiled and why."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded, interpreter, sized
from agents.cli.output import ReaderGone, echo, print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from tools.trace import ProcessTrace, Section, TraceOutput

_CHROME = "Also write a trace to FILE that chrome://tracing and ui.perfetto.dev open."
_TOP = "Rows of each table; 0 shows all."


@guarded
def trace(
    command: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after `--`.", metavar="-- COMMAND...")
    ],
    steps: options.Steps = 0,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    numerics: options.Numerics = options.NumericsName.FLOAT32,
    chrome: Annotated[
        Path | None, typer.Option("--chrome", metavar="FILE", help=_CHROME, rich_help_panel="Output")
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help=_TOP, rich_help_panel="Output")] = 15,
    json_output: options.Json = False,
) -> Exit | None:
    """Run a program and tell what ran, with the lines of your code.

    Operators with shapes, types and counts; what makes the host wait for the device (item, copies to the host,
    conditions on tensors); shapes that depend on data or change from step to step; operators that fall back to the
    CPU; graph breaks and recompilations of torch.compile; and for each step how many programs were compiled and why.
    A traced program waits for every operator, so that its times are not those of a run.

    For example:

        torchtpu-agent trace --steps 5 -- python train.py

        torchtpu-agent trace --steps 5 --chrome trace.json -- python train.py --batch 8

    Exit codes: 0 it ended well; 1 it did not, and what ran until then is told; 2 wrong usage; 3 it could not be
    started here; 4 interrupted; 5 a fault of ours.
    """
    from tools import run as runner
    from tools import trace as tracer
    from tools.commands import parse

    words = command[1:] if command[:1] == ["--"] else command
    if not words:
        raise UserError(
            "There is no program to run.", "Write it after two dashes: torchtpu-agent trace -- python train.py"
        )
    if chrome is not None and not chrome.absolute().parent.is_dir():
        raise UserError(f"There is no folder {chrome.absolute().parent}.", "Choose another file for --chrome.")
    found = interpreter(python)
    request = runner.RunRequest(
        command=parse(shlex.join(words)),
        cwd=Path.cwd(),
        device=device.value,
        python=Path(found) if found else None,
        steps=steps,
        timeout=timeout,
        idle_timeout=idle_timeout,
        memory=sized(memory),
        sandbox=not no_sandbox,
        numerics=numerics.value,
    )
    try:
        output = tracer.trace(
            request, chrome, on_output=lambda text: echo(text, nl=not text.endswith("\n"), err=json_output)
        )
    except ReaderGone as error:
        raise UserError(f"{error.message} The program was ended.", exit_code=Exit.INTERRUPTED) from error
    if json_output:
        print_json(output.model_dump(mode="json"))
    else:
        _show(output, top or 10**9)
    if output.ended_well:
        return Exit.PASSED
    return Exit.ENVIRONMENT if output.outcome == "not-started" else Exit.FAILED


def _show(output: TraceOutput, most: int) -> None:
    device = output.device or {}
    echo(f"\ndevice   {device.get('name') or 'none came up'}")
    echo(f"end      {output.explanation}")
    if not output.processes:
        echo("nothing  was seen: no process imported torch, or it died before its first operator was written down")
    for process in output.processes[:1]:
        _process(process, output, most)
    if len(output.processes) > 1:
        echo(f"\n{len(output.processes) - 1} more processes; --json tells of all")
    if output.chrome:
        echo(f"chrome   {output.chrome}")


def _process(process: ProcessTrace, output: TraceOutput, most: int) -> None:
    from tools.trace import sections

    calls = sum(one.count for one in process.operators)
    programs = sum(one.programs for one in process.compilations)
    who = f"rank {process.rank}, " if process.rank is not None else ""
    echo(
        f"ran      {who}{calls} operators in {process.steps} steps, {programs} programs compiled for them and "
        f"{process.compilations_elsewhere} elsewhere, {sum(s.count for s in process.syncs)} host syncs"
    )
    for section in sections(process, output.fallbacks, most):
        _table(section)


def _table(section: Section) -> None:
    from rich.table import Table
    from rich.text import Text

    title, heads, rows = section
    if not rows:
        echo(f"\n{title}: none")
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, head in enumerate(heads):
        table.add_column(head, overflow="fold", justify="right" if number == 0 else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out = console()
    out.print()
    out.print(table)
