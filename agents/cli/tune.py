"""`torchtpu-agent tune`: migrates, then tries what makes a step faster or smaller on a TPU, and proves each change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import commas, guarded, interpreter, sized
from agents.cli.holding import hold
from agents.cli.output import echo
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from agents.context import Context

_PANEL = "The tuning"
_TARGET = "TPU slice to tune for, such as v6e-1; one device of it. See: torchtpu-agent targets."
_ENTRY = (
    "The program, with its batch size if the batch is to be tried. Default: torchtpu.toml, else the best one found."
)
_BUDGET = "Try nothing new after that much time, such as 30m or 2h. Default: no limit."
_SMALL = "A smaller command of the same program for the verification. Default: the entry."
_ONLY = "Only these transformations, by commas; see docs/tune.md."
_QUICK = "Stop the compiler before it generates code: rougher times, in a fraction of the time."
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@guarded
def tune(
    source: Annotated[
        str | None, typer.Argument(help="A folder, migrated or not, or a git URL.", metavar="REPOSITORY")
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", "-e", metavar="COMMAND", help=_ENTRY, rich_help_panel="The program")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="SLICE", help=_TARGET, rich_help_panel=_PANEL)
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help=_BUDGET, rich_help_panel=_PANEL)
    ] = None,
    max_trials: Annotated[
        int | None,
        typer.Option(
            "--max-trials", metavar="N", min=0, help="Estimate that many changes at most.", rich_help_panel=_PANEL
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAMES", help=_ONLY, rich_help_panel=_PANEL)
    ] = None,
    keep_batch: Annotated[
        bool, typer.Option("--keep-batch", help="Do not try larger batches.", rich_help_panel=_PANEL)
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK, rich_help_panel=_PANEL)] = False,
    verify_entry: Annotated[
        str | None, typer.Option("--verify-entry", metavar="COMMAND", help=_SMALL, rich_help_panel=_PANEL)
    ] = None,
    verify_steps: options.VerifySteps = None,
    setup: options.Setup = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    unsafe_fixes: options.UnsafeFixes = False,
    branch: options.Branch = None,
    out: options.Out = None,
    resume: options.Resume = None,
    json_output: options.Json = False,
    verbose: options.Verbose = False,
) -> Exit | None:
    """Make a program's step faster on a TPU, or make it fit, and prove each change.

    The committed state (HEAD) is migrated where that is needed, in a private copy. Then transformations are tried one
    after another. Each is compiled for the target by Google's compiler; one that lowers the estimated time of a sample
    is run and compared with the plain migration, and kept as a commit with the figures before and after. You get a
    branch, a table of all trials, and where it helps a changed command. Times are estimates: nothing is measured.

    For example:

        torchtpu-agent tune ./nanoGPT --entry "python train.py --batch_size=8" --target v6e-1 --budget 2h

        torchtpu-agent tune . -e "python train.py" -t v5e --quick --only compile-module,autocast-loss

    Exit codes: 0 done, and the step fits; 1 it does not fit or cannot be estimated; 2 wrong usage or input; 3 the
    environment cannot do it; 4 interrupted (go on with --resume); 5 a fault of ours.
    """
    from agents import runs
    from agents.cli.migrate import absolute, new_file
    from agents.state import Request, TuneOptions
    from tools.git import without_password
    from tools.profile import target_named

    if (source is None) == (resume is None):
        raise UserError("Give a repository, or --resume with the id of a run.", "See: torchtpu-agent tune --help")

    def work(context: Context) -> Exit:
        return _to_the_end(context, json_output)

    if resume is not None:
        folder = runs.find(resume)
        if folder.request.tune is None:
            raise UserError(f"Run {resume} is no tuning.", f"Go on with: torchtpu-agent migrate --resume {resume}")
        return hold(folder, work, as_json=json_output, verbose=verbose, resumed=True)
    if target is None:
        raise UserError("No target is given.", "Name a TPU slice: --target v6e-1. See: torchtpu-agent targets")
    request = Request(
        source=absolute(source or ""),
        created=runs.now(),
        entries=[entry] if entry else [],
        device=device.value,
        python=interpreter(python),
        timeout=timeout,
        idle_timeout=idle_timeout,
        memory=sized(memory),
        sandbox=not no_sandbox,
        setup=setup or [],
        unsafe_fixes=unsafe_fixes,
        out=new_file(out),
        branch=branch,
        verify_steps=verify_steps,
        target=target_named(target).name,
        tune=TuneOptions(
            budget=_seconds(budget),
            max_trials=max_trials,
            quick=quick,
            verify_entry=verify_entry,
            only=_known(commas(only)),
            keep_batch=keep_batch,
        ),
    )
    folder = runs.create(request, without_password(request.source))
    return hold(folder, work, as_json=json_output, verbose=verbose)


def _seconds(text: str | None) -> float | None:
    """The seconds of a time such as `90`, `30m` or `1.5h`."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if match is None or float(match[1]) == 0:
        raise UserError(f"'{text}' is no time.", "Write it like 30m, 2h or 90s.")
    return float(match[1]) * _UNITS[match[2]]


def _known(names: list[str]) -> list[str]:
    from tools.transforms import every

    there = {one.ID for one in every()}
    for name in names:
        if name not in there:
            raise UserError(f"There is no transformation '{name}'.", f"There are: {', '.join(sorted(there))}.")
    return names


def _to_the_end(context: Context, as_json: bool) -> Exit:
    from agents import tune as graph

    graph.tune(context)
    folder = context.folder
    if as_json:
        echo(folder.report_json.read_text(encoding="utf-8"))
    return Exit(folder.card.exit_code or 0)
