"""`torchtpu-agent skill`: a folder that tells a coding assistant how to use this tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agents.cli.common import guarded
from agents.cli.output import echo
from tools.errors import Exit, UserError


@guarded
def skill(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write it.")] = Path(
        "torchtpu-agent-skill"
    ),
) -> Exit | None:
    """Write a skill folder for coding assistants: SKILL.md, references and the entry for their list of servers.

    It is made from what the installed version's tools, commands, rules and knowledge say of themselves. Written again
    over an older one; a folder of anything else is left alone.

    Exit codes: 0 written; 2 the folder holds something else.
    """
    from agents.skill import pages

    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "SKILL.md").is_file())):
        raise UserError(f"{out} holds something else.", "Name a new or an empty folder with --out.", Exit.BAD_INPUT)
    made = pages()
    for name, text in made.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    echo(f"{out}: {len(made)} files")
    return None
