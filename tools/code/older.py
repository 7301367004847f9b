"""Which releases of PyTorch a repository is for, where it says so, and so which of its APIs it can count on."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from tools.code.module import Module
from tools.code.requirements import FILES, requirements
from tools.code.source import SourceFile, Unreadable
from tools.project import Project, Trait

Release = tuple[int, int]

ACCELERATOR: Release = (2, 6)
"""The first release with ``torch.accelerator``."""
_WITHOUT: Release = (2, 5)
"""The last release without it."""
AMP: Release = (2, 4)
"""The first release in which ``torch.amp`` has all that ``torch.cuda.amp`` has."""

_METADATA = re.compile(r"^Requires-Dist:[ \t]*torch(?![\w.-])[ \t]*(\(?[^;\n]*)", re.MULTILINE)
_CLAUSE = re.compile(r"([=<>!~^]{1,3})[ \t]*v?(\d+)(?:\.(\d+))?")


def is_for_older(module: Module, release: Release = ACCELERATOR) -> bool:
    """Whether the repository around a file visibly supports a PyTorch older than ``release``.

    The requirement files nearest above the file decide by their lower bounds and pins; a test for ``torch.accelerator``
    somewhere in the repository says so too.
    """
    oldest = _oldest(module.project, module.source.relative)
    return oldest is not None and oldest < release


def _oldest(project: Project, path: str) -> Release | None:
    bounds = _bounds(project)
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in bounds:
            return bounds[folder]
    return _WITHOUT if project.has(Trait.ASKS_FOR_ACCELERATOR) else None


def _bounds(project: Project) -> dict[str, Release]:
    """The oldest release by folder, as files state it; found once a project."""
    known: dict[str, Release] | None = vars(project).get("_torch_bounds")
    if known is None:
        known = {}
        for folder, release in _stated(project):
            known[folder] = min(release, known.get(folder, release))
        vars(project)["_torch_bounds"] = known
    return known


def _stated(project: Project) -> Iterator[tuple[str, Release]]:
    for path in project.paths:
        if path.endswith(".py") and not path.endswith("setup.py"):
            continue
        folder, _, name = path.rpartition("/")
        metadata = name in ("METADATA", "PKG-INFO") and folder.endswith((".dist-info", ".egg-info"))
        if metadata or _is_requirements(path):
            with contextlib.suppress(Unreadable):
                source = SourceFile(path, project.read(path), python=False)
                specs = _METADATA.findall(source.text) if metadata else _specs(source)
                above = metadata or folder.endswith("requirements")
                home = folder.rpartition("/")[0] if above else folder
                yield from ((home, release) for spec in specs if (release := oldest_of(spec)))


def _is_requirements(path: str) -> bool:
    name = path.rpartition("/")[2]
    return any(_fits(pattern, path if "/" in pattern else name) for pattern in FILES)


def _fits(pattern: str, name: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) is not None


def _specs(source: SourceFile) -> list[str]:
    return [r.spec for r in requirements(source) if r.name in ("torch", "pytorch")]


def oldest_of(spec: str) -> Release | None:
    """The oldest release that version clauses name as allowed, None where they say nothing about it."""
    clauses = [(m[1], (int(m[2]), int(m[3] or 0))) for m in _CLAUSE.finditer(spec)]
    lower = [release for operator, release in clauses if operator in (">=", ">", "~=", "^", "~", "==", "===", "=")]
    upper = [release for operator, release in clauses if operator in ("<", "<=")]
    return max(lower) if lower else min(upper, default=None)
