"""`torchtpu-agent mcp`: the same tools for other programs, over the Model Context Protocol."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from agents.cli import options
from agents.cli.common import guarded, interpreter, sized
from agents.cli.output import echo
from tools.errors import Exit, UserError

_HTTP = "Serve over HTTP on this port of this machine, at /mcp. Default: standard input and output."
_NAME = "Name of the session; one that exists is gone on with. Default: mcp and the repository's name."


@guarded
def mcp(
    source: Annotated[str, typer.Argument(help="A folder or a git URL.", metavar="[REPOSITORY]")] = ".",
    http: Annotated[int | None, typer.Option("--http", metavar="PORT", min=1, max=65535, help=_HTTP)] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Leave out the tools that change the copy.")] = False,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help=_NAME)] = None,
    entry: options.Entry = None,
    steps: options.StepsOrDefault = None,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
) -> Exit | None:
    """Serve the tools of a chat to another program, such as a coding assistant, over the Model Context Protocol.

    They work on a private copy of the repository, kept as a session: `chat --resume` shows it, and /deliver there gives
    its commits to the repository as a branch. Needs the extra: pip install "torchtpu-agent[mcp]".

    For example:

        torchtpu-agent mcp ./repo --entry "python train.py"

        torchtpu-agent mcp ./repo --http 8765

    Exit codes: 0 the client went; 2 wrong usage or input; 3 the package mcp is not installed; 4 interrupted.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UserError("The package mcp is not installed.", 'pip install "torchtpu-agent[mcp]"', Exit.ENVIRONMENT)
    from agents import mcp_server, runs, sessions
    from agents.cli.migrate import absolute
    from agents.progress import Silent
    from agents.state import Request

    where = absolute(source)
    called = name or f"mcp-{sessions.free_name(where)}"
    folder = sessions.folder_of(called)
    if not sessions.is_made(folder):
        request = Request(
            source=where, created=runs.now(), entries=entry or [], device=device.value, python=interpreter(python),
            steps=steps, timeout=timeout, memory=sized(memory), sandbox=not no_sandbox,
        )  # fmt: skip
        sessions.create(request, called, Silent())
    with sessions.held(folder):
        server = mcp_server.make(sessions.bench_of(folder, Silent()), read_only=read_only)
        if http is None:
            mcp_server.serve_stdio(server)
        else:
            echo(f"serving  http://{mcp_server.HOST}:{http}/mcp  (session {called}; Ctrl-C ends it)", err=True)
            mcp_server.serve_http(server, http)
    return None
