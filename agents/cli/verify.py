"""`torchtpu-agent verify`: any two trees, compared as `migrate` compares its result with the original."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded, interpreter, sized
from agents.cli.output import print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from tools.verify import VerifyOutput

_SCOPE = "Folder inside both that the entry runs in, for a program that reads files outside of it. Default: the top."
_KEEP = "Keep recordings and logs in this new folder. Default: under the state directory (TORCHTPU_HOME)."


@guarded
def verify(
    original: Annotated[Path, typer.Argument(help="Folder with the original, CUDA program.", metavar="ORIGINAL")],
    migrated: Annotated[Path, typer.Argument(help="Folder with the migrated program.", metavar="MIGRATED")],
    entry: options.RequiredEntry,
    scope: Annotated[Path, typer.Option("--scope", metavar="FOLDER", help=_SCOPE)] = Path(),
    verify_steps: options.VerifySteps = None,
    setup: options.Setup = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="FOLDER", help=_KEEP, rich_help_panel="Output")] = None,
    json_output: options.Json = False,
) -> Exit | None:
    """Say whether a migrated program computes the same as the original, and where they first part.

    The original runs on the CPU with CUDA imitated, the migrated program on the CPU and on the device, all
    from the same seed, batches and random draws. Every module output, gradient, loss and parameter of the
    first steps is compared. The unit of error is what rounding alone does to the original: an error ratio
    of about 1 is healthy. Both folders must hold the data the entry needs; they are copied, not written to.

    For example:

        torchtpu-agent verify ./nanoGPT ./nanoGPT-tpu --entry "python train.py config/small.py"

        git worktree add ../tpu my-branch && torchtpu-agent verify . ../tpu -e "python main.py" --json

    Exit codes: 0 every stage that could be compared agrees; 1 a stage failed; 2 wrong usage or input; 3 the
    environment cannot do it; 4 interrupted; 5 a fault of ours. A stage that is `not run` proves nothing; the
    answer says what is missing.
    """
    from agents import proving

    for folder in (original, migrated):
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}.", "Name the two folders: the original, then the migrated.")
        if not (folder / scope).resolve().is_relative_to(folder.resolve()) or not (folder / scope).is_dir():
            raise UserError(f"There is no folder {scope} inside {folder}.", "Give --scope relative to both folders.")
    found = interpreter(python)
    request = proving.Trees(
        original=original.resolve(),
        migrated=migrated.resolve(),
        scope="" if scope == Path() else scope.as_posix(),
        setup=setup or [],
        device=device.value,
        python=Path(found) if found else None,
        steps=verify_steps or proving.STEPS,
        timeout=timeout,
        idle_timeout=idle_timeout,
        memory=sized(memory),
        sandbox=not no_sandbox,
    )
    scratch = _scratch(keep)
    out = console(stderr=True)

    def tell(said: str) -> None:
        if not json_output:
            out.print(f"verify   {said}", highlight=False, markup=False, soft_wrap=True)

    outputs = [
        proving.compare_trees(request, text, scratch / str(number), tell) for number, text in enumerate(entry, 1)
    ]
    return _end(outputs, scratch, json_output)


def _scratch(keep: Path | None) -> Path:
    from agents.runs import home

    if keep is not None:
        if keep.exists():
            raise UserError(f"{keep} exists.", "Choose another name for --keep.")
        return keep.absolute()
    parent = home() / "verify"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Path(tempfile.mkdtemp(prefix="", dir=parent))


def _end(outputs: list[VerifyOutput], scratch: Path, as_json: bool) -> Exit:
    from agents.proving import as_verdict
    from agents.stages.common import exit_code, worst
    from tools.judging import STAGES

    verdicts = [worst([as_verdict(output.stages[stage], scratch) for output in outputs]) for stage in STAGES]
    code = exit_code(verdicts)
    if as_json:
        entries = [output.model_dump(mode="json") for output in outputs]
        stages = [verdict.model_dump(mode="json") for verdict in verdicts]
        print_json({"stages": stages, "entries": entries, "folder": str(scratch), "exit_code": int(code)})
        return code
    out = console()
    for verdict in verdicts:
        owner = f" (owner: {verdict.owner})" if verdict.owner else ""
        line = f"{verdict.stage:<9} {verdict.result}{owner}: {verdict.reason}"
        out.print(line, highlight=False, markup=False, soft_wrap=True)
    out.print(f"evidence  {scratch}", highlight=False, markup=False, soft_wrap=True)
    return code
