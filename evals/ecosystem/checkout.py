"""Makes a checkout of a pinned commit with synthetic data in it, and fingerprints it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from evals.ecosystem.projects import Project
from evals.task import commit_all


def make(project: Project, target: Path, source_dir: Path | None) -> Path:
    """Return a checkout of the project with its data.

    Args:
        project: What to check out.
        target: Folder to make; it must not exist.
        source_dir: Folder that holds checkouts by the repository's name. Without it, the repository is
            cloned from GitHub.

    Raises:
        RuntimeError: The local checkout is at another commit.
    """
    if source_dir is None:
        _clone(project, target)
    else:
        _copy(project, source_dir / project.repository.split("/")[1], target)
    project.prepare(target)
    return target


def _clone(project: Project, target: Path) -> None:
    _git("clone", "--quiet", f"https://github.com/{project.repository}.git", str(target))
    _git("-C", str(target), "checkout", "--quiet", project.commit)


def _copy(project: Project, source: Path, target: Path) -> None:
    """Copy the files of a checkout into a repository of one commit.

    A stored copy may lack its largest files, so that git itself cannot clone it.
    """
    head = _git("-C", str(source), "rev-parse", "HEAD")
    if head != project.commit:
        raise RuntimeError(f"{source} is at {head}, not at the pinned {project.commit}")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    commit_all(target, f"{project.repository} at {project.commit}")


def fingerprint(checkout: Path) -> dict[str, str]:
    """Everything a migration must leave as it is: files, index, HEAD, configuration, old branches."""
    digest = hashlib.sha256()
    for path in sorted(checkout.rglob("*")):
        if ".git" not in path.relative_to(checkout).parts and path.is_file() and not path.is_symlink():
            digest.update(str(path.relative_to(checkout)).encode() + path.read_bytes())
    return {
        "files": digest.hexdigest(),
        "status": _git("-C", str(checkout), "status", "--porcelain=v1"),
        "head": (checkout / ".git" / "HEAD").read_text(),
        "config": (checkout / ".git" / "config").read_text(),
        "main": _git("-C", str(checkout), "rev-parse", "HEAD"),
        "stash": _git("-C", str(checkout), "stash", "list"),
    }


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
