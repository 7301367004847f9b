"""One package: scanned, patched, patched again, and its own tests before and after."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from evals.corpus.fetch import fetch, fetch_tests
from evals.corpus.packages import Package
from tools.findings import Finding
from tools.patch import patch_steps
from tools.scan import scan


class Record(BaseModel):
    """What was seen of one package.

    Attributes:
        name: of the package.
        version: or commit.
        revision: of this project, as it was when the run began.
        files: Python files.
        lines: in them.
        grades: findings by grade.
        changed: files that the safe fixes changed.
        rewritten: the lines of each, as they were numbered before, that the fixes took away or replaced.
        broken: changed files that do not compile although they did before.
        dropped: fixes that were dropped, and rules that failed.
        second_pass: rules that changed something in a second pass.
        tests: how many of the package's tests had which outcome before.
        test_changes: tests whose outcome is another one after, as ``test: before -> after``.
        findings: all of them.
    """

    name: str
    version: str
    revision: str = ""
    files: int = 0
    lines: int = 0
    grades: dict[str, int] = {}
    changed: int = 0
    rewritten: dict[str, list[int]] = {}
    broken: list[str] = []
    dropped: list[str] = []
    second_pass: list[str] = []
    tests: dict[str, int] = {}
    test_changes: list[str] = []
    findings: list[Finding] = []

    @property
    def faults(self) -> list[str]:
        """What does not compile, was dropped or fixed twice, and tests that come out otherwise."""
        return [*self.broken, *self.dropped, *self.second_pass, *self.test_changes]

    @property
    def holds(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


def study(
    package: Package, folder: Path, source_dir: Path | None, time_limit: float, python: Path = Path(sys.executable)
) -> Record:
    """Fetches, scans and patches one package.

    Args:
        package: the package.
        folder: where it is laid, before and after.
        source_dir: see ``evals.corpus.fetch``.
        time_limit: seconds for its tests.
        python: the interpreter for its tests.
    """
    before, after = folder / package.name, folder / f"{package.name}.patched"
    for place in (before, after):
        shutil.rmtree(place, ignore_errors=True)
    fetch(package, before, source_dir)
    shutil.copytree(before, after)
    record = Record(name=package.name, version=package.version)
    result = scan(before)
    texts = {path: path.read_bytes() for path in before.rglob("*.py")}
    record.files, record.lines = len(texts), sum(text.count(b"\n") for text in texts.values())
    record.findings = result.findings
    record.grades = dict(Counter(str(f.grade) for f in result.findings))
    record.dropped = [f"{s.path}: {s.reason}" for s in result.skipped if "fault of ours" in s.reason]
    for step in patch_steps(after):
        record.dropped += [f"{step.rule} {s.path}: {s.reason}" for s in step.skipped]
    record.second_pass = [f"{step.rule} {', '.join(step.files)}" for step in patch_steps(after)]
    _compare(record, texts, before, after)
    if package.tests:
        for place in (before, after):  # the same tests judge both, so those that come from elsewhere are not patched
            fetch_tests(package, place, folder / "suites", source_dir)
        _test(package, record, before, after, time_limit, python)
    return record


def _compare(record: Record, texts: dict[Path, bytes], before: Path, after: Path) -> None:
    for path, text in texts.items():
        new = (after / path.relative_to(before)).read_bytes()
        if new != text:
            record.changed += 1
            record.rewritten[path.relative_to(before).as_posix()] = _replaced(text, new)
            if _compiles(text) and not _compiles(new):
                record.broken.append(str(path.relative_to(before)))


def _replaced(old: bytes, new: bytes) -> list[int]:
    blocks = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False).get_opcodes()
    return [line + 1 for kind, start, end, _, _ in blocks if kind != "equal" for line in range(start, end)]


def _compiles(text: bytes) -> bool:
    try:
        compile(text, "file", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _test(package: Package, record: Record, before: Path, after: Path, time_limit: float, python: Path) -> None:
    old, new = (_outcomes(package, tree, time_limit, python) for tree in (before, after))
    record.tests = dict(Counter(old.values()))
    record.test_changes = [
        f"{test}: {old.get(test, 'missing')} -> {new.get(test, 'missing')}"
        for test in sorted(old.keys() | new.keys())
        if old.get(test) != new.get(test)
    ]


def _outcomes(package: Package, tree: Path, time_limit: float, python: Path) -> dict[str, str]:
    report = tree.parent / f"{tree.name}.xml"
    report.unlink(missing_ok=True)
    path = os.pathsep.join(str(place) for place in (tree / "src", tree) if place.is_dir())
    environment = os.environ | {"PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1",
                                "TPU_SKIP_MDS_QUERY": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # fmt: skip
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null",
               f"--rootdir={tree}", f"--junitxml={report}", *package.tests]  # fmt: skip
    subprocess.run(
        command,
        cwd=tree,
        env=environment | dict(package.environment),
        timeout=time_limit,
        capture_output=True,
        check=False,
    )
    if not report.exists():
        return {"the test run itself": "failed"}
    return {f"{case.get('classname')}.{case.get('name')}": _outcome(case) for case in ET.parse(report).iter("testcase")}


def _outcome(case: ET.Element) -> str:
    return next((kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None), "passed")
