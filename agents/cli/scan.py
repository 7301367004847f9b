"""`torchtpu-agent scan`: what in a folder needs a change; writes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from agents.cli import options
from agents.cli.common import commas, guarded
from agents.cli.output import echo
from tools.errors import Exit, UserError


@guarded
def scan(
    path: Annotated[Path, typer.Argument(help="A folder.", metavar="FOLDER")] = Path(),
    output_format: options.Format = options.FormatName.TEXT,
    output: options.Output = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 is one per processor.")] = 0,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="End with 0 also when there are findings.")] = False,
    json_output: options.Json = False,
) -> Exit | None:
    """Find what needs a change before the code runs on a TPU. Nothing is written, and torch is not needed.

    For example:

        torchtpu-agent scan ./repo

        torchtpu-agent scan . --format sarif --output findings.sarif --exit-zero

    Exit codes: 0 no finding of grade safe or unsafe; 1 there are some; 2 wrong usage or input.
    """
    from tools.findings import Grade
    from tools.formats import render
    from tools.scan import scan as examine

    chosen = options.FormatName.JSON if json_output else output_format
    if not path.is_dir():
        raise UserError(f"There is no folder {path}.", "Name the folder that holds the code.")
    chosen_rules, left_out = _codes(path, commas(select), commas(ignore))
    result = examine(path, select=chosen_rules, ignore=left_out, jobs=jobs or os.cpu_count() or 1)
    _write(render(result, chosen.value), output)
    serious = any(finding.grade is not Grade.ADVICE for finding in result.findings)
    return Exit.FAILED if serious and not exit_zero else None


def _codes(path: Path, select: list[str], ignore: list[str]) -> tuple[list[str], list[str]]:
    """The rules to run and to leave out: the command line's, over those of the folder's `torchtpu.toml`."""
    from tools.settings import FILE

    if not (path / FILE).exists():  # nearly always, and reading it loads half of the program
        return select, ignore
    from agents import settings

    file = settings.read(path)
    return select or file.select, [*ignore, *file.ignore]


def _write(text: str, output: Path | None) -> None:
    if output is None:
        echo(text)
        return
    output.write_text(text + "\n", encoding="utf-8")
    typer.echo(f"written to {output}", err=True)
