"""`torchtpu-agent chat`: debug a repository by talking, with a language model or without one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import console, guarded, interpreter, sized
from agents.cli.output import echo, print_json
from agents.modes import Mode
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from agents.chat import Chat
    from agents.debug import Desk
    from agents.llm.settings import ModelSettings
    from agents.progress import Progress
    from agents.runs import RunFolder
    from agents.state import Request
    from agents.terminal import Terminal

_MODE = "ask: ask before every change and run of the model; auto-safe: only before edits by hand; read-only: no change."
_session = {"rich_help_panel": "The session"}


@guarded
def chat(
    source: Annotated[
        str | None, typer.Argument(help="A folder or a git URL. Default: .", metavar="REPOSITORY")
    ] = None,
    mode: Annotated[Mode, typer.Option("--mode", help=_MODE, **_session)] = Mode.ASK,
    model: options.ModelName = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the session.", **_session)] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="NAME", help="Go on with a session.", **_session)
    ] = None,
    list_sessions: Annotated[bool, typer.Option("--list", help="List the sessions.", **_session)] = False,
    export: Annotated[
        str | None, typer.Option("--export", metavar="NAME", help="Print a session as Markdown.", **_session)
    ] = None,
    replay: options.Replay = None,
    entry: options.Entry = None,
    steps: options.StepsOrDefault = None,
    setup: options.Setup = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    verify_steps: options.VerifySteps = None,
    json_output: options.Json = False,
    verbose: options.Verbose = False,
) -> Exit | None:
    """Debug a repository by talking: commands that begin with a slash, pasted errors, and plain language.

    You work on a private copy; every change is a commit in it, /undo takes it back, /deliver gives it to your
    repository as a branch. Plain language goes to a language model where --model names one, else to diagnosis and
    search. Lines may come from a pipe; then nobody can be asked, and what needs approval is not done.

    For example:

        torchtpu-agent chat ./nanoGPT --entry "python train.py config/small.py"

        torchtpu-agent chat --resume nanogpt

        torchtpu-agent chat ./repo < commands.txt

    Exit codes: 0 the session ended as you asked; 2 wrong usage or input; 3 the environment cannot do it; 4
    interrupted (go on with --resume); 5 a fault of ours.
    """
    if list_sessions:
        _list(json_output)
        return None
    if export is not None:
        from agents.exporting import exported

        echo(exported(export), nl=False)
        return None
    if resume is not None and source is not None:
        raise UserError("--resume goes on with a session's own repository.", "Leave the repository out.")
    from agents import runs, sessions
    from agents.cli.migrate import absolute
    from agents.progress import OnConsole
    from agents.state import Request

    progress = OnConsole(console(), verbose)
    chosen = _model_settings(model, replay, source, resume)
    if resume is not None:
        return _talk(sessions.find(resume), mode, chosen, replay, progress, resumed=True)
    request = Request(
        source=absolute(source or "."), created=runs.now(), entries=entry or [], device=device.value,
        python=interpreter(python), steps=steps, timeout=timeout, idle_timeout=idle_timeout, memory=sized(memory),
        sandbox=not no_sandbox, setup=setup or [], verify_steps=verify_steps,
    )  # fmt: skip
    folder = _create(request, name, progress, chosen)
    return _talk(folder, mode, chosen, replay, progress, resumed=False)


def _create(request: Request, name: str | None, progress: Progress, chosen: ModelSettings | None) -> RunFolder:
    from agents import sessions

    try:
        return sessions.create(
            request, name or sessions.free_name(request.source), progress, chosen.model if chosen else ""
        )
    finally:
        progress.close()


def _model_settings(
    option: str | None, replay: Path | None, source: str | None, resume: str | None
) -> ModelSettings | None:
    from agents import sessions
    from agents.llm.settings import configured

    if replay is not None:
        return None
    if resume is not None:
        return configured(option, sessions.folder_of(resume).tree)
    here = Path(source or ".")
    return configured(option, here if here.is_dir() else None)


def _list(as_json: bool) -> None:
    from agents import sessions

    cards = sessions.every()
    if as_json:
        print_json([card.model_dump(mode="json") for card in cards])
        return
    for card in cards:
        echo(f"{card.name:<20}  {card.created}  {card.model or 'no model':<20}  {card.source}")
    if not cards:
        echo("There are no sessions.", err=True)


def _talk(
    folder: RunFolder,
    mode: Mode,
    chosen: ModelSettings | None,
    replay: Path | None,
    progress: Progress,
    *,
    resumed: bool,
) -> Exit | None:
    from agents import debug, sessions
    from agents.chat import Chat
    from agents.commands import WORDS
    from agents.runs import home
    from agents.terminal import Terminal

    with sessions.held(folder):
        desk = _desk(folder, mode, chosen, replay, progress)
        terminal = Terminal(home() / "chats" / "history", list(WORDS))
        with debug.opened(desk) as graph:
            talk = Chat(graph, desk, terminal.ask)
            _greet(talk, chosen, replay, resumed)
            return _lines(talk, terminal, progress)


def _desk(folder: RunFolder, mode: Mode, chosen: ModelSettings | None, replay: Path | None, progress: Progress) -> Desk:
    from agents.desks import furnished

    def say(text: str) -> None:
        progress.close()
        sys.stdout.write(text)
        sys.stdout.flush()

    desk = furnished(folder, mode, chosen, replay, progress)
    desk.on_text = say
    desk.on_call = lambda call: say(f"\n-> {call.name} {_short(call.arguments)}\n")
    desk.on_result = lambda text: say(_first_lines(text))
    return desk


def _first_lines(text: str, most: int = 6) -> str:
    """The beginning of a result, for a person who can ask for the rest."""
    plain = text.replace("<data>", "").replace("</data>", "")
    lines = [_short(line) for line in plain.splitlines() if line.strip()]
    more = f"   ... {len(lines) - most} more lines\n" if len(lines) > most else ""
    return "".join(f"   {line}\n" for line in lines[:most]) + more


def _short(text: str, most: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def _greet(talk: Chat, chosen: ModelSettings | None, replay: Path | None, resumed: bool) -> None:
    from agents.standing import standing

    state = talk.bench.state
    echo(f"session  {state.run_id} of {state.origin.name} ({talk.desk.mode})")
    if replay is not None:
        echo(f"model    replayed from {replay}")
    elif chosen is None:
        echo("model    no model configured: commands, diagnosis and search work; see docs/models.md")
    else:
        echo(f"model    {chosen.model} at {chosen.where}; what it reads of the repository goes there")
    echo(f"entry    {state.entries[0].command if state.entries else 'none found; /run COMMAND'}")
    if resumed:
        echo(f"shown    {standing(talk.bench)}")
    echo("help     /help, and /quit to end")


def _lines(talk: Chat, terminal: Terminal, progress: Progress) -> Exit | None:
    from agents import interrupts

    unfinished = talk.is_unfinished()
    if unfinished:
        echo("resume   the last turn was not ended; going on with it")
    while True:
        try:
            line = None if unfinished else terminal.read("> ")
            unfinished = False
            if line is None or line.strip():
                _line(talk, line, progress)
        except EOFError:
            echo(f"kept     torchtpu-agent chat --resume {talk.bench.state.run_id}")
            return None
        except KeyboardInterrupt:
            progress.close()
            if interrupts.wants_end() or not terminal.is_person:
                raise
            interrupts.listen()
            echo("\nInterrupted; the session goes on. Ctrl-D or /quit ends it.")


def _line(talk: Chat, line: str | None, progress: Progress) -> None:
    from agents.commands import obey, remember

    if line is None or not line.lstrip().startswith("/"):
        talk.turn(line)
        echo("")
        return
    result = obey(talk, line.strip())
    progress.close()
    echo(result.text)
    remember(talk, line.strip(), result)
