"""`torchtpu-agent diagnose`: from an error, a log, a run or a failing command to ranked causes and remedies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agents.cli import options
from agents.cli.common import guarded, interpreter, sized
from agents.cli.output import echo, print_json
from tools.errors import Exit, UserError

if TYPE_CHECKING:
    from agents.evidence import Evidence

_WHAT = "A log, - for standard input, the id of a run, or (after `--`) a program with its arguments."
_REPO = "Look for the causes in this folder too, and show what their rules would change. Default: the program's folder."
Repository = Annotated[Path | None, typer.Option("--repo", metavar="FOLDER", help=_REPO)]


@guarded
def diagnose(
    what: Annotated[list[str] | None, typer.Argument(help=_WHAT, metavar="[LOG | RUN | - | -- COMMAND...]")] = None,
    repo: Repository = None,
    steps: options.Steps = 0,
    device: options.Device = options.DeviceName.AUTO,
    python: options.Python = None,
    timeout: options.Timeout = None,
    idle_timeout: options.IdleTimeout = None,
    memory: options.Memory = None,
    no_sandbox: options.NoSandbox = False,
    json_output: options.Json = False,
) -> Exit | None:
    """Explain a failure: likely causes, the lines that show them, what to do, and the rule or patch that does it.

    Causes are `certain` when the error itself says so, `likely` when a warning or the native log does, and
    `possible` when only the output hints at it. Where nothing known fits, it says so. Nothing is changed. A
    command is run in the current folder under the launcher of `run`, with its limits.

    For example:

        torchtpu-agent diagnose train.log --repo .

        python train.py 2>&1 | torchtpu-agent diagnose -

        torchtpu-agent diagnose --steps 5 -- python train.py

    Exit codes: 0 nothing is wrong; 1 there is something to explain, whether a cause was found or not; 2 wrong
    usage or input; 3 the program could not be started here; 4 interrupted; 5 a fault of ours.
    """
    from agents import evidence
    from agents.knowledge_store import refuted
    from tools import run as runner
    from tools.explain import explain, render

    words = [word for index, word in enumerate(what or []) if index or word != "--"]
    kind = evidence.kind_of(words)
    if kind == "command":
        found = interpreter(python)
        request = runner.RunRequest(
            command=evidence.parsed(words), cwd=Path.cwd(), device=device.value, python=Path(found) if found else None,
            steps=steps, timeout=timeout, idle_timeout=idle_timeout, memory=sized(memory), sandbox=not no_sandbox,
        )  # fmt: skip
        gathered = [evidence.from_command(request, words, lambda text: echo(text, nl=False, err=True))]
    else:
        gathered = _recorded(kind, words)
    explanations = [explain(e.run, e.origin, _folder(repo) or e.repository, refuted()) for e in gathered]
    if json_output:
        documents = [explanation.model_dump(mode="json") for explanation in explanations]
        print_json(documents[0] if len(documents) == 1 else {"programs": documents})
    else:
        echo("\n\n".join(render(explanation) for explanation in explanations))
    if all(explanation.ended_well for explanation in explanations):
        return Exit.PASSED
    return Exit.ENVIRONMENT if any(e.outcome == "not-started" for e in explanations) else Exit.FAILED


def _recorded(kind: str, words: list[str]) -> list[Evidence]:
    from agents import evidence

    if kind == "run":
        return evidence.from_run(words[0])
    if kind == "log":
        return [evidence.from_log(Path(words[0]))]
    if not words and sys.stdin.isatty():
        raise UserError("There is nothing to explain.", "See: torchtpu-agent diagnose --help")
    return [evidence.from_text(sys.stdin.read(), "standard input")]


def _folder(repo: Path | None) -> Path | None:
    if repo is not None and not repo.is_dir():
        raise UserError(f"There is no folder {repo}.", "Name the folder that holds the code.")
    return repo.resolve() if repo else None
