"""Compares a migrated tree with the original, for the stages that rest on it: in a migration, or any two folders.

Both are laid out as copies beside the run's other files; they themselves are only read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from agents import import_paths, workspace
from agents.context import Context
from agents.runs import remove_tree, write_whole
from agents.stages.common import not_run, worst
from agents.state import Entry, Owner, Result, Settings, State, Verdict
from tools import commands, git
from tools import run as runner
from tools import verify as verifier
from tools.errors import UserError
from tools.judging import StageVerdict
from tools.verify import VerifyOutput, VerifyRequest

STEPS = Settings().verify_steps
_MOST_PROBLEMS = 20


class Trees(BaseModel):
    """Two trees and the conditions of their runs.

    Attributes:
        committed: Both hold committed files only, and `data` the user's folder with the others, where there is one.
        left_out: Files of `data` that are not taken.
        scope: Folder inside the trees that commands run in.
        paths: Folders of the trees put on PYTHONPATH.
        on_device: False where the program is known not to run on the device.
        reuse: Folder of an earlier comparison with the same original, whose runs of it are taken.
    """

    original: Path
    migrated: Path
    committed: bool = False
    data: Path | None = None
    left_out: set[str] = set()
    scope: str = ""
    paths: list[str] = []
    setup: list[str] = []
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: Path | None = None
    steps: int = STEPS
    timeout: float | None = None
    idle_timeout: float | None = None
    memory: int | None = None
    sandbox: bool = True
    on_device: bool = True
    reuse: Path | None = None


def verdict(stage: str, state: State, context: Context) -> Verdict:
    """The verdict on a stage that compares, over all entries; the worst of them counts."""
    if state.request.dry_run:
        return not_run(stage, "a dry run starts no program")
    if not state.request.verify:
        return not_run(stage, "left out, as --no-verify asks")
    if not state.entries:
        return not_run(stage, "no entry command is known; give one with --entry")
    verdicts = []
    for number, entry in enumerate(state.entries, 1):
        folder = context.folder.path / "verify" / f"{state.attempt}-{number}"
        verdicts.append(as_verdict(_compared(entry, folder, state, context).stages[stage], folder))
    return worst(verdicts)


def as_verdict(found: StageVerdict, folder: Path) -> Verdict:
    """A stage's verdict as reports have it."""
    return Verdict(
        stage=found.stage,
        result=Result(found.result),
        reason=found.reason,
        owner=Owner(found.owner) if found.owner else None,
        evidence=[str(folder)],
        figures=found.figures,
        problems=found.problems[:_MOST_PROBLEMS],
    )


def _compared(entry: Entry, folder: Path, state: State, context: Context) -> VerifyOutput:
    """The comparison of one entry, made when it is first asked for."""
    kept = folder / "result.json"
    if kept.is_file():
        return VerifyOutput.model_validate_json(kept.read_bytes())
    base = context.folder.path / "verify" / "base"
    remove_tree(base)
    git.write_files(context.folder.tree, state.origin.base, base)
    try:
        trees = _trees(base, entry, state, context)
        return compare_trees(trees, entry.command, folder, lambda said: context.progress.working("verify", said))
    finally:
        remove_tree(base)


def _trees(base: Path, entry: Entry, state: State, context: Context) -> Trees:
    record = next((run for run in state.latest if run.entry == entry.command), None)
    most = state.settings.verify_steps
    known = {"steps": min(most, state.settings.steps or most), "on_device": record is not None and record.ended_well}
    return private_trees(base, state, context).model_copy(update=known)


def private_trees(original: Path, state: State, context: Context) -> Trees:
    """A tree of committed files beside the private tree as it stands, to be run as the user asked."""
    source, request, settings = state.origin, state.request, state.settings
    return Trees(
        original=original,
        migrated=context.folder.tree,
        committed=True,
        data=source.data,
        left_out=source.modified,
        scope=source.scope,
        paths=state.import_paths,
        setup=settings.setup,
        device=request.device,
        python=Path(request.python) if request.python else None,
        steps=settings.verify_steps,
        timeout=settings.timeout,
        idle_timeout=settings.idle_timeout,
        memory=settings.memory,
        sandbox=request.sandbox,
    )


def compare_trees(trees: Trees, entry: str, folder: Path, tell: Callable[[str], None]) -> VerifyOutput:
    """Compare one entry of two trees; the result, logs and recordings are kept in `folder`.

    Args:
        trees: The trees and how to run them.
        entry: The command.
        folder: Where everything is kept; an old one is removed.
        tell: Called with what is being done.
    """
    remove_tree(folder)
    copies = {"original": folder / "trees" / "original", "migrated": folder / "trees" / "migrated"}
    command = commands.parse(entry)
    try:
        _lay_out(trees, copies, folder)
        output = verifier.verify(_request(trees, command, copies, folder), tell)
    except UserError as error:
        output = verifier.impossible(entry, f"{error.message} {error.remedy}".strip())
    finally:
        remove_tree(folder / "trees")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "result.json", output.model_dump_json(indent=1))
    return output


def _request(trees: Trees, command: commands.Command, copies: dict[str, Path], folder: Path) -> VerifyRequest:
    return VerifyRequest(
        command=command,
        original=copies["original"],
        migrated=copies["migrated"],
        scope=trees.scope,
        import_paths=trees.paths,
        scratch=folder,
        device=trees.device,
        python=trees.python,
        steps=trees.steps,
        timeout=trees.timeout,
        idle_timeout=trees.idle_timeout,
        memory=trees.memory,
        sandbox=trees.sandbox,
        on_device=trees.on_device,
        reuse=trees.reuse,
    )


def _lay_out(trees: Trees, copies: dict[str, Path], folder: Path) -> None:
    """Copies of both trees with the user's data, after the setup commands."""
    links = trees.sandbox and runner.sandbox_available()
    empty = folder / "empty"
    empty.mkdir(parents=True)
    for name, tree in (("original", trees.original), ("migrated", trees.migrated)):
        # Of a folder that is the user's own, what is in the way (environments, caches) stays behind.
        committed, files = (tree, trees.data) if trees.committed else (empty, tree)
        workspace.build(committed, files, copies[name], links=links, left_out=trees.left_out)
        for number, text in enumerate(trees.setup, 1):
            _set_up(text, copies[name], folder / f"setup-{name}-{number}.log", trees)
    empty.rmdir()


def _set_up(text: str, copy: Path, log: Path, trees: Trees) -> None:
    request = runner.RunRequest(
        command=commands.parse(text).importing(import_paths.within(copy, trees.paths)),
        cwd=copy / trees.scope,
        device="cpu",
        python=trees.python,
        timeout=trees.timeout,
        sandbox=trees.sandbox,
        writable=[copy],
        log=log,
    )
    workspace.set_up(text, request)
