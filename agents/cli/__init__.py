"""The command line `torchtpu-agent`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import typer

from agents import interrupts
from agents.cli.common import complain
from agents.cli.output import OutputError, writing
from tools.errors import Exit

HELP = """
Takes PyTorch repositories written for CUDA to Google TPUs, and shows stage by stage what holds.

It needs no TPU and no language model: without a TPU the migrated program runs on the real TorchTPU
backend over a simulated device.

Start here:

    torchtpu-agent doctor                                   what is installed, which device would be used

    torchtpu-agent scan ./repo                              what needs a change; writes nothing

    torchtpu-agent migrate ./repo --entry "python train.py" a branch, a run on the device, a report

    torchtpu-agent tune ./repo --entry "..." --target v6e-1  what makes its step faster on a TPU

    torchtpu-agent verify ./repo ./migrated -e "python train.py"   do both compute the same?

    torchtpu-agent run -- python train.py                   run any script on the device

    torchtpu-agent diagnose train.log --repo .              why did it fail, and what to do

    torchtpu-agent chat ./repo                              all of it in a conversation

Your checkout is never written: a migration ends with a new branch (or a patch file), and nothing else.

Exit codes: 0 every stage that ran passed; 1 a stage failed; 2 wrong usage or input; 3 the environment
cannot do it (no device, a package is missing); 4 interrupted or waiting for you; 5 a fault of ours.
"""

_COMMANDS = tuple(
    "migrate tune verify run trace diagnose chat serve worker mcp scan profile targets"
    " doctor knowledge rules runs skill eval".split()
)
"""In the order of the help page; each is a module with a function of its name, or with an `app` of several."""
_TAKES_ALL = ("run", "trace")
"""Commands behind whose first argument every word is the workload's."""


def application(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with these commands; one command alone loads a third of the modules."""
    app = typer.Typer(
        name="torchtpu-agent",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in names:
        module = import_module(f"agents.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            settings = {"allow_interspersed_args": False} if name in _TAKES_ALL else None
            app.command(name, context_settings=settings)(getattr(module, name))
    return app


def __getattr__(name: str) -> typer.Typer:
    """`app` is the whole command line, made when it is asked for."""
    if name != "app":
        raise AttributeError(name)
    return application()


def _version(value: bool) -> None:
    if value:
        from agents.report.make import version

        typer.echo(f"torchtpu-agent {version()}")
        raise typer.Exit


# The base of all usage errors; typer hands out only this subclass, and its parents' home depends on its version.
_USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]
_TYPER_INTERRUPTED = 130


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and end."
    ),
) -> None:
    """Options before the command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    interrupts.listen()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path that the terminal's encoding lacks is shown with escapes instead of ending the command.
            stream.reconfigure(errors="backslashreplace")
    words = list(arguments) if arguments is not None else sys.argv[1:]
    try:
        app = application(words[:1] if words and words[0] in _COMMANDS else _COMMANDS)
        with writing():  # what no command prints: help pages and usage errors
            code = _run_json(app, words) if "--json" in words else app(args=words)
    except OutputError as error:
        complain(error.message, error.remedy, error.exit_code, as_json=False)
        code = error.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        interrupts.ended()
        _forget_interrupt()
    return int(Exit.INTERRUPTED) if code == _TYPER_INTERRUPTED else code or 0


def _run_json(app: typer.Typer, words: list[str]) -> int:
    """Run a command that promises one JSON document, which a usage error has to be too."""
    try:
        return int(app(args=words, standalone_mode=False) or 0)
    except _USAGE_ERROR as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else app.info.name
        complain(error.format_message(), f"See: {command} --help", Exit.BAD_INPUT, as_json=True)
        return int(Exit.BAD_INPUT)


def _forget_interrupt() -> None:
    """Keep the exit code of an interrupted command.

    CPython remembers that a KeyboardInterrupt went through the `exec` of a string (a dataclass is made by
    one) and, under `-m`, then dies of SIGINT whatever the exit code. The next such `exec` clears that memory.
    """
    exec("")
