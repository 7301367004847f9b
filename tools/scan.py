"""Finds what in a repository needs a change before it runs on a TPU."""

from __future__ import annotations

import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.engine import examine, finding, is_python, reads
from tools.findings import Finding, ScanResult, Skipped
from tools.project import Project
from tools.rules import selected
from tools.rules.base import Rule
from tools.source import MAX_BYTES

Progress = Callable[[int, int], None]
"""Called with files done and files in all."""

_Part = tuple[int, list[Finding], list[Skipped]]


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
        select: rule ids or prefixes to run (all if empty).
        ignore: rule ids or prefixes to leave out.
        jobs: processes to share the work between.
        on_progress: told how far it is.

    Returns:
        Findings sorted by path and position; files that could not be examined are listed with the reason.

    Raises:
        ValueError: if a code in ``select`` or ``ignore`` matches no rule.
        NotADirectoryError: if ``root`` is no folder.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder")
    rules = selected(select, ignore)
    project = Project(root)
    paths = [path for path in project.paths if reads(path, rules)]
    result = ScanResult(root=str(root), files=len(paths))
    for number, (parsed, findings, skipped) in enumerate(_parts(project, paths, rules, jobs), 1):
        result.parsed += parsed
        result.findings += findings
        result.skipped += skipped
        if on_progress:
            on_progress(min(number * _CHUNK, len(paths)), len(paths))
    result.skipped += project.skipped
    result.findings.sort(key=lambda f: (f.path, f.cell or 0, f.line, f.column, f.rule))
    result.skipped.sort(key=lambda s: s.path)
    return result


_CHUNK = 48


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
    _worker = project, [rule for rule in selected() if rule.ID in ids]


def _work(paths: list[str]) -> _Part:
    assert _worker is not None
    return _examine_chunk(*_worker, paths)


def _examine_chunk(project: Project, rules: list[Rule], paths: list[str]) -> _Part:
    parsed, findings, skipped = 0, list[Finding](), list[Skipped]()
    with _without_collector():
        for path in paths:
            data = _read(project.root / path, path, skipped)
            if data is None:
                continue
            seen = examine(path, data, project, rules, whole=False)
            parsed += seen.parsed
            skipped += seen.skipped
            if seen.source is not None:
                findings += [finding(rule, match, seen.source) for rule, match in seen.matches]
    return parsed, findings, skipped


def _read(path: Path, relative: str, skipped: list[Skipped]) -> bytes | None:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            if is_python(relative):
                reason = f"{size / 1e6:.1f} MB; files over {MAX_BYTES / 1e6:.1f} MB are taken for generated or data"
                skipped.append(Skipped(path=relative, reason=reason))
            return None
        return path.read_bytes()
    except OSError as error:
        skipped.append(Skipped(path=relative, reason=f"cannot be read: {error.strerror or error}"))
        return None


@contextmanager
def _without_collector() -> Iterator[None]:
    """Syntax trees are large and free of use after each file; the cyclic collector would walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
