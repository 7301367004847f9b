"""Takes the user's code in: reads it, never writes to it, and makes the private tree."""

from __future__ import annotations

import os
from pathlib import Path

from langgraph.runtime import Runtime

from agents import folders, import_paths, settings
from agents.context import Context
from agents.entries import from_texts
from agents.runs import RunFolder, remove_tree
from agents.state import Request, Source, State
from tools import git
from tools.errors import UserError
from tools.project import Project
from tools.run import device_line


def intake(state: State, runtime: Runtime[Context]) -> dict[str, object]:
    """Make the private tree, read torchtpu.toml and check what the user named."""
    context = runtime.context
    request = state.request
    python = Path(request.python) if request.python else None
    context.progress.done("device", device_line(request.device, python))
    context.progress.working("intake", git.without_password(request.source))
    remove_tree(context.folder.tree)
    source = take_in(request, context.folder)
    git.check_branch_name(source.checkout if source.kind == "repository" else None, state.branch)
    root = context.folder.tree / source.scope
    if not any(path.endswith((".py", ".ipynb")) for path in Project(root).paths):
        raise UserError(f"There is no Python in {source.name}.", "Name the folder that holds the code.")
    file = settings.read(root)
    combined = settings.combine(request, file)
    origin = "--entry" if request.entries else settings.FILE
    for note in source.notes:
        context.progress.note(note)
    return {
        "source": source,
        "settings": combined,
        "import_paths": import_paths.of_project(context.folder.tree, source.scope),
        "entries": from_texts(combined.entries, origin, root),
    }


def take_in(request: Request, folder: RunFolder) -> Source:
    """Find out what the source is and make the private tree of it."""
    if git.is_address(request.source):
        return _from_address(request.source, folder)
    path = Path(request.source).expanduser()
    if not path.exists():
        raise UserError(f"There is no {path}.", "Give the path of a folder, or a git URL such as https://...")
    if not path.is_dir():
        raise UserError(f"{path} is a file.", "Give the folder that holds the code.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UserError(f"{path} cannot be read.", "Check its permissions.")
    path = path.resolve()
    checkout = git.inspect(path)
    if checkout is None:
        return _from_folder(path, request, folder)
    if checkout.head is None:
        raise UserError(f"{checkout.root} has no commit yet.", "Commit the files first: git add -A && git commit")
    return _from_checkout(checkout, folder)


def _from_checkout(checkout: git.Checkout, folder: RunFolder) -> Source:
    assert checkout.head is not None
    git.make_private(checkout, folder.tree)
    return Source(
        kind="repository",
        name=str(Path(checkout.root) / checkout.prefix),
        files=None if checkout.bare else checkout.root,
        checkout=checkout,
        scope=checkout.prefix,
        base=checkout.head,
        notes=checkout_notes(checkout),
    )


def checkout_notes(checkout: git.Checkout) -> list[str]:
    """What the user should know about the state of their checkout."""
    notes = []
    if checkout.modified:
        notes.append(f"uncommitted changes are not included (HEAD is migrated): {_some(checkout.modified)}")
    code = [name for name in checkout.untracked if name.endswith((".py", ".ipynb"))]
    if code:
        notes.append(f"untracked code is not migrated, but is there when the entry runs: {_some(code)}")
    if checkout.submodules:
        notes.append(f"submodules are left alone: {_some(checkout.submodules)}")
    if checkout.branch is None:
        notes.append(f"HEAD is detached at {(checkout.head or '')[:12]}")
    if checkout.shallow:
        notes.append("the clone is shallow; the branch builds on the commits that are there")
    if checkout.bare:
        notes.append("the repository is bare: there are no data files beside the committed ones")
    if not checkout.writable:
        notes.append("the repository is read-only: the result will be a patch file")
    return notes


def _some(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _from_folder(path: Path, request: Request, folder: RunFolder) -> Source:
    notes = [_why_no_repository(path)]
    notes += folders.copy(path, folder.tree, aside=folder.path)
    if not any(folder.tree.iterdir()):
        raise UserError(f"There is no Python in {path}.", "Name the folder that holds the code.")
    base = git.make_from_folder(folder.tree, request.created)
    return Source(kind="folder", name=str(path), files=str(path), base=base, notes=notes)


def _why_no_repository(path: Path) -> str:
    said = "a copy is migrated, and the result is a patch file"
    broken = git.refused(path)
    if broken is None:
        return f"not a git repository: {said}"
    return f"git does not take {broken} for a repository (is it damaged?): {said}"


def _from_address(url: str, folder: RunFolder) -> Source:
    clone = folder.path / "clone"
    remove_tree(clone)
    git.clone(url, clone)
    checkout = git.inspect(clone)
    name = git.without_password(url)
    if checkout is None or checkout.head is None:
        raise UserError(f"{name} has no commit yet.", "There is nothing to migrate in an empty repository.")
    git.make_private(checkout, folder.tree)
    return Source(
        kind="address",
        name=name,
        files=None,
        checkout=checkout,
        base=checkout.head,
        notes=[f"submodules are left alone: {_some(checkout.submodules)}"] if checkout.submodules else [],
    )
