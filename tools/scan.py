"""Finds what in a repository needs a change before it runs on a TPU."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.choice import choose
from tools.code.source import Unreadable
from tools.engine import applicable, examine, finding, is_python, reads, without_collector
from tools.findings import Finding, ScanResult, Skipped
from tools.project import Project, Trait, traits_of
from tools.rules import selected
from tools.rules.base import Rule

Progress = Callable[[int, int], None]
"""Called with files done and files in all."""


def scan(
    root: Path,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    jobs: int = 1,
    on_progress: Progress | None = None,
) -> ScanResult:
    """Runs the rules over a folder; nothing is written.

    Args:
        root: the folder.
        select: rule ids or prefixes to run (if empty, those the folder's `torchtpu.toml` selects, else all).
        ignore: rule ids or prefixes to leave out, besides those `torchtpu.toml` ignores.
        jobs: processes to share the work between.
        on_progress: told how far it is.

    Returns:
        Findings sorted by path and position; files that could not be examined are listed with the reason.

    Raises:
        UnknownRule: if a code in ``select`` or ``ignore`` matches no rule.
        NotADirectoryError: if ``root`` is no folder.
        UserError: if its `torchtpu.toml` cannot be used.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder")
    settings, rules = choose(root, select, ignore)
    project = Project(root, settings)
    paths = [path for path in project.paths if reads(path, rules)]
    total = _Part()
    for number, part in enumerate(_parts(project, paths, rules, jobs), 1):
        total.add(part)
        if on_progress:
            on_progress(min(number * _CHUNK, len(paths)), len(paths))
    project.known = total.traits
    for path, doubtful in total.doubtful.items():
        total.add(_examine_file(project, rules, path) if doubtful.asked & total.traits else doubtful)
    return ScanResult(
        root=str(root),
        files=total.files,
        parsed=total.parsed,
        findings=sorted(total.findings, key=lambda f: (f.path, f.cell or 0, f.line, f.column, f.rule)),
        skipped=sorted([*total.skipped, *project.skipped], key=lambda s: s.path),
    )


_CHUNK = 24
"""Files that a process takes at a time."""


@dataclass
class _Part:
    """What was seen in some files.

    Attributes:
        files: how many some rule reads.
        parsed: how many were parsed.
        findings: what was found.
        skipped: what could not be examined.
        traits: what the files have.
        asked: the traits that the findings depend on and that were not known.
        doubtful: files whose findings depend on traits that other files may have, by path.
    """

    files: int = 0
    parsed: int = 0
    findings: list[Finding] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    traits: Trait = Trait.NONE
    asked: Trait = Trait.NONE
    doubtful: dict[str, _Part] = field(default_factory=dict)

    def add(self, other: _Part) -> None:
        self.files += other.files
        self.parsed += other.parsed
        self.findings += other.findings
        self.skipped += other.skipped
        self.traits |= other.traits
        self.doubtful.update(other.doubtful)


def _parts(project: Project, paths: list[str], rules: list[Rule], jobs: int) -> Iterator[_Part]:
    chunks = [paths[i : i + _CHUNK] for i in range(0, len(paths), _CHUNK)]
    if jobs < 2 or len(chunks) < 2:
        yield from (_examine_chunk(project, rules, chunk) for chunk in chunks)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    settings = (project, tuple(rule.ID for rule in rules))
    with context.Pool(min(jobs, len(chunks)), _start_worker, settings) as pool:
        yield from pool.imap_unordered(_work, chunks)


_worker: tuple[Project, list[Rule]] | None = None
"""What a worker process works with; set once so that facts about the project are found once a process."""


def _start_worker(project: Project, ids: tuple[str, ...]) -> None:
    global _worker
    # A fork has the command's own handlers: the pool ends its workers by SIGTERM, and Ctrl-C is the parent's to hear.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):  # absent on Windows
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    _worker = project, [rule for rule in selected() if rule.ID in ids]


def _work(paths: list[str]) -> _Part:
    assert _worker is not None
    return _examine_chunk(*_worker, paths)


def _examine_chunk(project: Project, rules: list[Rule], paths: list[str]) -> _Part:
    whole = _Part()
    with without_collector():
        for path in paths:
            project.known, project.asked = (project.known or Trait.NONE) | whole.traits, Trait.NONE
            part = _examine_file(project, rules, path)
            if part.asked:
                whole.traits |= part.traits
                whole.doubtful[path] = part
            else:
                whole.add(part)
    return whole


def _examine_file(project: Project, rules: list[Rule], path: str) -> _Part:
    try:
        data = project.read(path)
    except Unreadable as problem:
        told = [Skipped(path=path, reason=problem.reason)]
        return _Part(files=1, skipped=told) if is_python(path) else _Part()
    traits = traits_of(path, data)
    applying = applicable(path, data, project, rules)
    if not applying:
        return _Part(traits=traits)
    seen = examine(path, data, project, applying, whole=False)
    findings = [finding(rule, match, seen.source) for rule, match in seen.matches] if seen.source else []
    return _Part(1, seen.parsed, findings, seen.skipped, traits, project.asked)
