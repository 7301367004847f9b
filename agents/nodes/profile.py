"""Profiles a step of each entry for the TPU asked for: the stages `fits` and `fast`."""

from __future__ import annotations

from pathlib import Path

from langgraph.runtime import Runtime

from agents import import_paths, workspace
from agents.context import Context
from agents.nodes.run import copy_into
from agents.runs import home, remove_tree, write_whole
from agents.stages import targeted
from agents.stages.common import worst
from agents.state import Entry, State, Verdict
from tools import commands
from tools import profile as profiler
from tools import run as runner
from tools.errors import UserError
from tools.profiles.html import page


def profile(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Judge `fits` and `fast`; without a target they stay `not run`."""
    context = runtime.context
    why_not = targeted.reason(state)
    if why_not is not None:
        context.progress.working("profile", why_not)
        return {}
    pairs = [_judged(number, entry, state, context) for number, entry in enumerate(state.entries, 1)]
    found = {"fits": worst([pair[0] for pair in pairs]), "fast": worst([pair[1] for pair in pairs])}
    context.progress.done("profile", " | ".join(f"{name} {verdict.result}" for name, verdict in found.items()))
    for verdict in found.values():
        context.progress.note(f"{verdict.stage}: {verdict.reason}")
    return {"verdicts": [found.get(verdict.stage, verdict) for verdict in state.verdicts]}


def _judged(number: int, entry: Entry, state: State, context: Context) -> tuple[Verdict, Verdict]:
    folder = context.folder.path / "profile" / str(number)
    copy = folder / "copy"
    try:
        request = request_for(entry.command, copy, state, context)
        output = profiler.profile(request, lambda said: context.progress.working("profile", said))
    except UserError as error:
        return targeted.impossible(f"{error.message} {error.remedy}".strip())
    finally:
        remove_tree(copy)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "profile.json", output.model_dump_json(indent=1))
    write_whole(folder / "profile.html", page(output.profile, f"{entry.command} on {output.target}"))
    return targeted.verdicts(output, [str(folder / "profile.html"), str(folder / "profile.json")])


def request_for(text: str, copy: Path, state: State, context: Context) -> profiler.ProfileRequest:
    """A command in a fresh copy of the private tree with the user's data, after the setup commands."""
    source, asked = state.origin, state.request
    assert asked.target is not None
    copy_into(copy, context.folder.tree, state)
    python = Path(asked.python) if asked.python else None
    command = commands.parse(text).importing(import_paths.within(copy, state.import_paths))
    for number, first in enumerate(state.settings.setup, 1):
        setup = runner.RunRequest(
            command=commands.parse(first), cwd=copy / source.scope, device="cpu", python=python, sandbox=asked.sandbox,
            writable=[copy], log=copy.parent / f"setup-{number}.log",
        )  # fmt: skip
        workspace.set_up(first, setup)
    return profiler.ProfileRequest(
        command=command,
        cwd=copy / source.scope,
        original=copy / source.scope,
        target=asked.target,
        python=python,
        timeout=state.settings.timeout,
        memory=state.settings.memory,
        sandbox=asked.sandbox,
        state=home() / "profiles",
    )
