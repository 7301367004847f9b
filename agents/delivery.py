"""Hands the result to the user: a branch in their repository, or a patch file."""

from __future__ import annotations

import shlex
from pathlib import Path

from agents.runs import RunFolder, write_whole
from agents.state import Delivery, Source, State
from tools import git


def deliver(state: State, folder: RunFolder) -> Delivery:
    """Give the result; doing it twice is the same as doing it once."""
    if not state.commits:
        return Delivery(kind="nothing", note="There was nothing to change.")
    source = state.origin
    if state.request.dry_run:
        patch = _write_patch(state, folder, folder.patch)
        note = "This was a dry run: no branch was made. The changes it would make are in the patch."
        return Delivery(kind="nothing", patch=str(patch), note=note, review=f"less {_quote(patch)}")
    if state.request.out:
        return _patch(state, folder, Path(state.request.out), "")
    if source.kind != "repository" or source.checkout is None:
        return _patch(state, folder, folder.patch, _why_patch(source))
    if not source.checkout.writable:
        return _patch(state, folder, folder.patch, "The repository is read-only.")
    problem = git.hand_over(folder.tree, Path(source.checkout.root), state.branch)
    if problem:
        return _patch(state, folder, folder.patch, f"The branch could not be handed over: {problem}.")
    return _branch(state, source.checkout)


def _why_patch(source: Source) -> str:
    if source.kind == "folder":
        return "The folder is no git repository, so the result is a patch."
    return "The code came from an address, so the result is a patch; nothing was pushed."


def _branch(state: State, checkout: git.Checkout) -> Delivery:
    root, branch = _quote(checkout.root), _quote(state.branch)
    since = _quote(checkout.branch) if checkout.branch else state.origin.base[:12]
    return Delivery(
        kind="branch",
        branch=state.branch,
        tip=state.commits[-1].sha,
        review=f"git -C {root} diff {since}...{branch}",
        merge=f"git -C {root} merge {branch}",
        discard=f"git -C {root} branch -D {branch}",
    )


def _patch(state: State, folder: RunFolder, path: Path, note: str) -> Delivery:
    patch = _write_patch(state, folder, path)
    return Delivery(
        kind="patch",
        patch=str(patch),
        tip=state.commits[-1].sha,
        note=note,
        review=f"git apply --stat {_quote(patch)}",
        merge=_apply(state.origin, patch),
        discard=f"rm {_quote(patch)}",
    )


def _apply(source: Source, patch: Path) -> str:
    if source.kind == "address" or (source.checkout and source.checkout.bare) or source.files is None:
        return f"cd <your clone> && git apply {_quote(patch)}"
    folder = Path(source.files)
    # In a folder that a repository around it does not track, `git apply` would change nothing and say nothing.
    foreign = source.kind == "folder" and any((parent / ".git").exists() for parent in folder.parents)
    alone = f"GIT_CEILING_DIRECTORIES={_quote(folder.parent)} " if foreign else ""
    return f"cd {_quote(folder)} && {alone}git apply {_quote(patch)}"


def _write_patch(state: State, folder: RunFolder, path: Path) -> Path:
    write_whole(path, git.make_patch(folder.tree, state.origin.base, state.commits[-1].sha))
    return path


def _quote(value: object) -> str:
    return shlex.quote(str(value))
