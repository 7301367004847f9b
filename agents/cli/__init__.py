"""The command line `torchtpu-agent`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType

import typer

from agents.cli import doctor, migrate, rules, run, runs, scan

HELP = """
Takes PyTorch repositories written for CUDA to Google TPUs, and shows stage by stage what holds.

It needs no TPU and no language model: without a TPU the migrated program runs on the real TorchTPU
backend over a simulated device.

Start here:

    torchtpu-agent doctor                                   what is installed, which device would be used

    torchtpu-agent scan ./repo                              what needs a change; writes nothing

    torchtpu-agent migrate ./repo --entry "python train.py" a branch, a run on the device, a report

    torchtpu-agent run -- python train.py                   run any script on the device

Your checkout is never written: a migration ends with a new branch (or a patch file), and nothing else.

Exit codes: 0 every stage that ran passed; 1 a stage failed; 2 wrong usage or input; 3 the environment
cannot do it (no device, a package is missing); 4 interrupted or waiting for you; 5 a fault of ours.
"""

app = typer.Typer(
    name="torchtpu-agent",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("migrate")(migrate.migrate)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("scan")(scan.scan)
app.command("doctor")(doctor.doctor)
app.add_typer(rules.app, name="rules")
app.add_typer(runs.app, name="runs")


def _version(value: bool) -> None:
    if value:
        from agents.report.make import version

        typer.echo(f"torchtpu-agent {version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and end."
    ),
) -> None:
    """Options before the command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _interrupt)
    try:
        app(args=list(arguments) if arguments is not None else sys.argv[1:])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        _forget_interrupt()
    return 0


def _forget_interrupt() -> None:
    """Keep the exit code of an interrupted command.

    CPython remembers that a KeyboardInterrupt went through the `exec` of a string (a dataclass is made by
    one) and, under `-m`, then dies of SIGINT whatever the exit code. The next such `exec` clears that memory.
    """
    exec("")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
