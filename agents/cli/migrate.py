"""`torchtpu-agent migrate`: the main job, from a repository to a branch and a report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import commas, console, guarded, interpreter, sized
from agents.cli.holding import hold
from agents.cli.output import echo, print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from agents.context import Context
    from agents.runs import RunFolder
    from agents.state import Plan, State


@guarded
def migrate(
    source: Annotated[
        str | None, typer.Argument(help="A folder, a subfolder of a repository, or a git URL.", metavar="REPOSITORY")
    ] = None,
    entry: options.Entry = None,
    steps: options.StepsOrDefault = None,
    setup: options.Setup = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    numerics: options.Numerics = options.NumericsName.FLOAT32,
    unsafe_fixes: options.UnsafeFixes = False,
    select: options.Select = None,
    ignore: options.Ignore = None,
    branch: options.Branch = None,
    out: options.Out = None,
    dry_run: options.DryRun = False,
    approve: options.Approve = False,
    yes: options.Yes = False,
    verify_steps: options.VerifySteps = None,
    no_verify: options.NoVerify = False,
    target: options.TargetSlice = None,
    model: options.ModelName = None,
    replay: options.Replay = None,
    resume: options.Resume = None,
    json_output: options.Json = False,
    verbose: options.Verbose = False,
) -> Exit | None:
    """Migrate a repository, run it on the device, and report stage by stage what holds.

    The committed state (HEAD) is migrated, in a private copy. You get a new branch with one commit per
    rule; your files, index and configuration are not touched. A folder without git is answered with a patch.

    For example:

        torchtpu-agent migrate ./nanoGPT --entry "python train.py config/train_shakespeare_char.py"

        torchtpu-agent migrate https://github.com/owner/project --dry-run

        torchtpu-agent migrate . --out tpu.patch --steps 0

    Exit codes: 0 every stage that ran passed; 1 a stage failed; 2 wrong usage or input; 3 the environment
    cannot do it; 4 interrupted or waiting for approval (go on with --resume); 5 a fault of ours.
    """
    from agents import runs
    from agents.state import Request
    from tools.git import without_password

    if (source is None) == (resume is None):
        raise UserError("Give a repository, or --resume with the id of a run.", "See: torchtpu-agent migrate --help")

    def work(context: Context) -> Exit:
        return _to_the_end(context, json_output, yes)

    if resume is not None:
        folder = runs.find(resume)
        if folder.request.tune is not None:
            raise UserError(f"Run {resume} is a tuning.", f"Go on with: torchtpu-agent tune --resume {resume}")
        return hold(folder, work, as_json=json_output, verbose=verbose, yes=yes, resumed=True)
    request = Request(
        source=absolute(source or ""),
        created=runs.now(),
        entries=entry or [],
        device=device.value,
        python=interpreter(python),
        steps=steps,
        timeout=timeout,
        idle_timeout=idle_timeout,
        memory=sized(memory),
        sandbox=not no_sandbox,
        setup=setup or [],
        numerics=numerics.value,
        unsafe_fixes=unsafe_fixes,
        select=commas(select),
        ignore=commas(ignore),
        out=new_file(out),
        branch=branch,
        dry_run=dry_run,
        approve=approve,
        verify=not no_verify,
        verify_steps=verify_steps,
        target=_target(target),
        model=None if replay else _model_name(model, source or ""),
        replay=str(replay.absolute()) if replay else None,
    )
    folder = runs.create(request, without_password(request.source))
    return hold(folder, work, as_json=json_output, verbose=verbose, yes=yes, resumed=False)


def _target(name: str | None) -> str | None:
    """The slice to profile for; that there is one is checked now."""
    from tools.profile import target_named

    return target_named(name).name if name else None


def _model_name(option: str | None, source: str) -> str | None:
    """The model that is to get what rules leave; that it can be reached is checked now, not after half an hour."""
    from agents.llm.settings import configured

    here = Path(source).expanduser()
    chosen = configured(option, here if here.is_dir() else None)
    return chosen.model if chosen else None


def absolute(source: str) -> str:
    """A path as seen from anywhere, since a run may be resumed from another folder; a URL as it is."""
    from tools.git import is_address

    if not source:
        raise UserError("The repository is an empty text.", "Give its path, such as . for the current folder.")
    path = Path(source).expanduser()
    text = str(path.absolute()) if path.exists() or not is_address(source) else source
    if text.encode(errors="replace").decode() != text:
        raise _no_text(os.fsencode(text))
    return text


def _no_text(path: bytes) -> UserError:
    """What to say of a path that the file system's encoding cannot decode."""
    shown = path.decode(errors="backslashreplace")
    if shown.encode() == path:
        reason = f"Python takes names of files for {sys.getfilesystemencoding()} here, which {shown} is not."
        return UserError(reason, "Set PYTHONUTF8=1, or a UTF-8 locale.", Exit.ENVIRONMENT)
    return UserError(f"The path {shown} is not UTF-8 text.", "Rename the folder, or reach it by a link.")


def new_file(path: Path | None) -> str | None:
    """The path of a file that is not there yet.

    Raises:
        UserError: It is, or its folder is not.
    """
    if path is None:
        return None
    path = path.expanduser().absolute()
    if path.exists():
        raise UserError(f"{path} exists.", "Remove it first, or choose another name for --out.")
    if not path.parent.is_dir():
        raise UserError(f"There is no folder {path.parent} for --out.")
    return str(path)


def _to_the_end(context: Context, as_json: bool, yes: bool) -> Exit:
    from agents import migrate as graph

    state, waiting = graph.migrate(context, answer=True if yes else None)
    if waiting is not None:
        context.progress.close()
        if not as_json:
            _show_plan(waiting)
        # A closed standard input is None.
        if as_json or not (sys.stdin and sys.stdin.isatty()):
            return _wait(context.folder, waiting, as_json)
        state, waiting = graph.migrate(context, answer=typer.confirm("Apply this plan?", default=False))
    return _end(context.folder, state, as_json)


def _show_plan(plan: Plan) -> None:
    from tools.wording import amount

    out = console()
    for item in plan.items:
        what = "fix  " if item.action == "fix" else "leave"
        line = (
            f"plan     {what} {item.rule} {item.grade:<6} {item.findings} in {amount(item.files, 'file')}  {item.why}"
        )
        out.print(line, highlight=False, markup=False)
    for command in plan.entries:
        out.print(f"plan     run   {command}", highlight=False, markup=False)


def _wait(folder: RunFolder, plan: Plan, as_json: bool) -> Exit:
    folder.update(status="waiting", exit_code=int(Exit.INTERRUPTED))
    command = f"torchtpu-agent migrate --resume {folder.id} --yes"
    if as_json:
        print_json({"run": folder.id, "status": "waiting", "plan": plan.model_dump(mode="json"), "resume": command})
    else:
        console().print(f"waiting  for your approval: {command}", highlight=False, markup=False)
    return Exit.INTERRUPTED


def _end(folder: RunFolder, state: State, as_json: bool) -> Exit:
    from agents.stages.common import exit_code

    if as_json:
        echo(folder.report_json.read_text(encoding="utf-8"))
    return exit_code(state.verdicts)
