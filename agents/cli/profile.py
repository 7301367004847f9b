"""`torchtpu-agent profile`: does a step fit a TPU that is not there, how long should it take, what costs what."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agents.cli import options
from agents.cli.common import console, guarded, interpreter, sized
from agents.cli.output import echo, print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from tools.profile import ProfileOutput, ProfileRequest
    from tools.profiles.fit import Attempt

_PANEL = "The profile"
_TARGET = "TPU slice the step is compiled for, such as v6e-8; may be given several times. See: torchtpu-agent targets."
_ENTRY = "The migrated program. Default: the entry of torchtpu.toml."
_STEP = "Which optimizer step is recorded, from 1; the first also makes the optimizer's state."
_QUICK = "Stop the compiler before it generates code: the same memory, a rougher time, in a fraction of the time."
_SOURCE = "Folder of the migrated program, or a module or function such as package.model:Net to call once."
_INPUT = "An input of such a module, such as bfloat16[8,1024]; may be given several times."
_COMPARE = "Compare two files that --json wrote, and do nothing else."
_SIZE = "Memory the compiler may take on this machine, such as 8G."


@guarded
def profile(
    source: Annotated[
        str | None, typer.Argument(help=_SOURCE, metavar="[FOLDER|MODULE:NAME]", show_default=False)
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", "-e", metavar="COMMAND", help=_ENTRY, rich_help_panel="The program")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", "-t", metavar="SLICE", help=_TARGET, rich_help_panel=_PANEL)
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="TYPE[SHAPE]", help=_INPUT, rich_help_panel="The program")
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Send a module's mean output backward too.", rich_help_panel="The program")
    ] = False,
    step: Annotated[int, typer.Option("--step", min=1, metavar="N", help=_STEP, rich_help_panel=_PANEL)] = 2,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="BEFORE AFTER", help=_COMPARE, rich_help_panel=_PANEL, show_default=False),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use nothing from the cache.", rich_help_panel=_PANEL)] = False,
    quick: Annotated[bool, typer.Option("--quick", help=_QUICK, rich_help_panel=_PANEL)] = False,
    compile_timeout: Annotated[
        float,
        typer.Option(
            "--compile-timeout", metavar="SECONDS", min=1, help="End the compiler after that.", rich_help_panel=_PANEL
        ),
    ] = 3600.0,
    compile_memory: Annotated[
        str, typer.Option("--compile-memory", metavar="SIZE", help=_SIZE, rich_help_panel=_PANEL)
    ] = "8G",
    python: options.Python = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that needs nothing else.", rich_help_panel="Output"),
    ] = None,
    chrome: Annotated[
        Path | None,
        typer.Option("--chrome", metavar="FILE", help="Write a trace for Perfetto.", rich_help_panel="Output"),
    ] = None,
    json_output: options.Json = False,
) -> Exit | None:
    """Say whether a training step fits a TPU, how long it should take, what limits it and which lines cost what.

    No TPU is needed. The program runs as it is, with tensors on the device that have shapes but no data, until
    one optimizer step is recorded: its own operators, forward, backward and optimizer. TorchTPU lowers them and
    Google's compiler compiles them for the target. Memory is the compiler's own account. Time is an estimate,
    and the output says by which model; nothing is measured. Compiling takes minutes; a second run takes it
    from the cache under the state directory (TORCHTPU_HOME).

    For example:

        torchtpu-agent profile ./nanoGPT-tpu --entry "python train.py --compile=False" --target v6e-8

        torchtpu-agent profile . -e "python train.py" -t v5e -t v6e --html profile.html --json > after.json

        torchtpu-agent profile model:Net --input "float32[64,3,224,224]" --train -t v6e --quick

        torchtpu-agent profile --compare before.json after.json

    Exit codes: 0 the step fits; 1 it does not, or it cannot be recorded or lowered; 2 wrong usage or input; 3 the
    environment cannot do it; 4 interrupted; 5 a fault of ours.
    """
    if compare is not None:
        _compare(compare, json_output)
        return None
    folder, entry = _program(source, entry, inputs or [], train)
    if not target:
        raise UserError("No target is given.", "Name a TPU slice: --target v6e-8. See: torchtpu-agent targets")
    requests = _requests(
        folder,
        entry,
        target,
        step=step,
        python=Path(found) if (found := interpreter(python)) else None,
        timeout=timeout,
        memory=sized(memory),
        sandbox=not no_sandbox,
        compile_timeout=compile_timeout,
        compile_memory=sized(compile_memory) or 0,
        fresh=fresh,
        quick=quick,
    )
    out = console(stderr=True)

    def tell(said: str) -> None:
        if not json_output:
            out.print(f"profile  {said}", highlight=False, markup=False, soft_wrap=True)

    outputs = _profiled(requests, tell)
    _write_files(outputs, html, chrome)
    return _end(outputs, json_output)


def _program(source: str | None, entry: str | None, inputs: list[str], train: bool) -> tuple[Path, str | None]:
    """The folder a program runs in, and its command: for a module, one that calls it."""
    if source is None:
        raise UserError("No folder is given.", "Name the program's folder, or a module: package.model:Net")
    folder = Path(source)
    if folder.is_dir():
        return folder.resolve(), entry
    if ":" not in source:
        raise UserError(f"There is no folder {source}.", "Name the program's folder, or a module: package.model:Net")
    words = ["python", "-m", "torchtpu.lowering.module_run", source, *(f"--input={text}" for text in inputs)]
    return Path.cwd(), shlex.join([*words, *(["--train"] if train else [])])


def _requests(source: Path, entry: str | None, targets: list[str], **conditions: Any) -> list[ProfileRequest]:
    from agents.runs import home
    from agents.settings import read
    from tools import commands
    from tools.profile import ProfileRequest, target_named

    text = entry or next(iter(read(source).entry), None)
    if text is None:
        raise UserError("No entry command is known.", 'Give the migrated program: --entry "python train.py"')
    for name in targets:
        target_named(name)
    return [
        ProfileRequest(
            command=commands.parse(text),
            cwd=source,
            original=source,
            target=name,
            state=home() / "profiles",
            **conditions,
        )
        for name in targets
    ]


def _profiled(requests: list[ProfileRequest], tell: Callable[[str], None]) -> list[ProfileOutput]:
    """Profile for each target; the program runs in a copy, which only the first needs."""
    state = requests[0].state
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(prefix="copy-", dir=state))
    try:
        outputs = []
        for request in requests:
            output = _one(request, scratch, tell)
            if output.outcome == "out-of-memory":
                tell("it does not fit; trying smaller batches")
                output.attempts = [attempt.model_dump() for attempt in _tried(request, scratch, tell)]
            outputs.append(output)
        return outputs
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _one(request: ProfileRequest, scratch: Path, tell: Callable[[str], None]) -> ProfileOutput:
    from tools import profile as profiler

    copy = scratch / "copy"
    if not profiler.is_recorded(request):
        _copy(request, copy)
    return profiler.profile(request.model_copy(update={"cwd": copy}), tell)


def _tried(request: ProfileRequest, scratch: Path, tell: Callable[[str], None]) -> list[Attempt]:
    from tools import commands
    from tools.profiles.fit import make_fit

    def other(text: str) -> ProfileOutput:
        return _one(request.model_copy(update={"command": commands.parse(text), "quick": True}), scratch, tell)

    return make_fit(request.command.text, other)


def _copy(request: ProfileRequest, copy: Path) -> None:
    from agents import workspace
    from tools import run as runner

    empty = copy.parent / "empty"
    empty.mkdir(exist_ok=True)
    links = request.sandbox and runner.sandbox_available()
    workspace.build(empty, request.original, copy, links=links, left_out=set())


def _write_files(outputs: list[ProfileOutput], html: Path | None, chrome: Path | None) -> None:
    from tools.profiles.html import page
    from tools.profiles.trace import trace

    for output in outputs:
        title = f"{output.command} on {output.target}"
        if html is not None:
            _named(html, output, outputs).write_text(page(output.profile, title), encoding="utf-8")
        if chrome is not None:
            _named(chrome, output, outputs).write_text(json.dumps(trace(output.profile)), encoding="utf-8")


def _named(path: Path, output: ProfileOutput, outputs: list[ProfileOutput]) -> Path:
    if len(outputs) == 1:
        return path
    return path.with_name(f"{path.stem}-{output.target.replace(':', '-')}{path.suffix}")


def _end(outputs: list[ProfileOutput], as_json: bool) -> Exit:
    from tools.profiles.fit import attempts_text
    from tools.profiles.text import text

    code = Exit.PASSED if all(output.outcome == "ok" for output in outputs) else Exit.FAILED
    if as_json:
        print_json([output.model_dump(mode="json") for output in outputs])
        return code
    for output in outputs:
        timing = output.timing
        echo(text(output.profile))
        for line in attempts_text(output):
            echo(line)
        cached = f"; from the cache: {', '.join(output.cached)}" if output.cached else ""
        echo(
            f"\ntook     {timing.whole:.0f} s: recording {timing.capture:.0f}, lowering {timing.lowering:.0f},"
            f" compiling {timing.compile:.0f}{cached}\n"
        )
    return code


def _compare(paths: tuple[Path, Path], as_json: bool) -> None:
    from tools.profiles.compare import compare, compare_text

    found = compare(*(_read(path) for path in paths))
    if as_json:
        print_json(found)
    else:
        echo(compare_text(found))


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        first = document[0] if isinstance(document, list) else document
        return dict(first["profile"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path} is no profile ({error}).", "Write one with: torchtpu-agent profile ... --json"
        ) from error
