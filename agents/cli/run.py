"""`torchtpu-agent run`: any program on the device, under supervision, with an explanation of its end."""

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
    from tools.run import RunOutput


@guarded
def run(
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
    log: options.Log = None,
    json_output: options.Json = False,
    verbose: options.Verbose = False,
) -> Exit | None:
    """Run a program on the device and explain how it ended.

    It runs in the current folder and may write there; elsewhere the sandbox keeps files read-only. Its
    output goes through as it comes (to standard error with --json).

    For example:

        torchtpu-agent run -- python train.py --epochs 1

        torchtpu-agent run --steps 20 --timeout 600 -- torchrun --nproc-per-node 2 train.py

    Exit codes: 0 it ended well; 1 it did not (the explanation and --json give its own exit code or
    signal); 2 wrong usage; 3 it could not be started here; 4 interrupted; 5 a fault of ours.
    """
    from tools import run as runner
    from tools.commands import parse

    words = command[1:] if command[:1] == ["--"] else command
    if not words:
        raise UserError(
            "There is no program to run.", "Write it after two dashes: torchtpu-agent run -- python train.py"
        )
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
        verbose=verbose,
        log=log.absolute() if log else None,
    )
    try:
        output = runner.run(request, on_output=lambda text: echo(text, nl=not text.endswith("\n"), err=json_output))
    except ReaderGone as error:
        raise UserError(f"{error.message} The program was ended.", exit_code=Exit.INTERRUPTED) from error
    return _end(output, json_output)


def _end(output: RunOutput, as_json: bool) -> Exit:
    if as_json:
        print_json(output.model_dump(mode="json"))
    else:
        device = output.device or {}
        out = console(stderr=True)
        out.print(f"device   {device.get('name') or 'none came up'}", highlight=False, markup=False, soft_wrap=True)
        out.print(f"end      {output.explanation}", highlight=False, markup=False, soft_wrap=True)
    if output.outcome in ("completed", "stopped-at-steps"):
        return Exit.PASSED
    return Exit.ENVIRONMENT if output.outcome == "not-started" else Exit.FAILED
