"""`torchtpu-agent serve`: runs, reports and chats as pages in a browser."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from agents.cli.common import guarded
from agents.cli.output import echo
from tools.errors import Exit, UserError

_HOST = "Address to bind. Others than this machine's own need a token."
_TOKEN_FILE = "File whose first line is the token that one signs in with. Default: TORCHTPU_TOKEN, else none."
_RUNS = "Migrations that are worked on at once."
_NEEDED = ("fastapi", "uvicorn", "jinja2", "python_multipart", "prometheus_client")


@guarded
def serve(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help=_HOST)] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes one that is free.")] = 8700,
    token_file: Annotated[Path | None, typer.Option("--token-file", metavar="FILE", help=_TOKEN_FILE)] = None,
    most_runs: Annotated[int, typer.Option("--runs", min=1, metavar="N", help=_RUNS)] = 2,
) -> Exit | None:
    """Show runs, reports and chats in a browser, and start them from there.

    Without a token only this machine is answered, and everybody on it may use the pages. Whoever gets in can run
    programs. Needs the extra: pip install "torchtpu-agent[server]".

    For example:

        torchtpu-agent serve

        TORCHTPU_TOKEN=$(cat token) torchtpu-agent serve --host 0.0.0.0

    Exit codes: 0 it was ended; 2 wrong usage or input; 3 a package is missing, or the address is in use; 5 a fault of
    ours.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        message = f"The server needs packages that are not installed: {', '.join(missing)}."
        raise UserError(message, 'pip install "torchtpu-agent[server]"', Exit.ENVIRONMENT)
    from pydantic import SecretStr

    from agents.web.server import run
    from agents.web.settings import ServeSettings

    run(ServeSettings(host=host, port=port, token=SecretStr(_token(token_file)), most_runs=most_runs), echo)
    return None


def _token(file: Path | None) -> str:
    if file is None:
        return os.environ.get("TORCHTPU_TOKEN", "").strip()
    try:
        lines = file.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The token file {file} cannot be read: {error}.") from error
    if not lines or not lines[0].strip():
        raise UserError(f"The token file {file} is empty.", "Put the token on its first line.")
    return lines[0].strip()
