"""Runs a repository's own tests on the CPU and compares their outcomes, test by test, with those of another tree."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from tools import run as runner
from tools.commands import Command
from tools.project import Project

Outcome = Literal["passed", "failed", "skipped"]
_UNITTEST = re.compile(r"^(\w+) \(([\w.]+)\)(?:\n.*)?? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)", re.MULTILINE)
_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "expected failure": "passed", "skipped": "skipped"}
_REPORT = ".torchtpu-tests.xml"


class TestsRequest(BaseModel):
    """Where the tests are run."""

    __test__ = False

    cwd: Path
    writable: Path
    log: Path
    python: Path | None = None
    folders: list[Path] = Field(default=[], description="first on PYTHONPATH")
    timeout: float = 300.0
    sandbox: bool = True


class TestsOutput(BaseModel):
    """What the tests of one tree came to."""

    __test__ = False

    command: str
    outcomes: dict[str, Outcome] = {}
    files: dict[str, str] = Field(default={}, description="file:line of each test where known")
    explanation: str = Field(default="", description="why there are no outcomes")
    log: str = ""

    def count(self, outcome: Outcome) -> int:
        """How many tests ended so."""
        return sum(1 for seen in self.outcomes.values() if seen == outcome)


def has_tests(root: Path) -> bool:
    """Whether a tree has files that a test runner would collect."""
    for name in Project(root).paths:
        stem = name.rpartition("/")[2]
        if stem.endswith(".py") and (stem.startswith("test_") or stem.endswith("_test.py")):
            text = (root / name).read_bytes()
            if b"def test" in text:
                return True
    return False


def run_tests(request: TestsRequest) -> TestsOutput:
    """Run the tests with pytest, or with unittest where the program's interpreter has no pytest."""
    words = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
    if not _has_settings(request.cwd):
        # pytest would take those of a folder above, and name the tests by their way from there.
        words += ["-c", os.devnull, "--rootdir=."]
    report = request.cwd / _REPORT
    output = _run(request, [*words, f"--junitxml={_REPORT}"])
    if report.is_file():
        return _from_report(report, output, " ".join(words))
    if "No module named pytest" in output.output_tail:
        words = ["python", "-m", "unittest", "discover", "-v"]
        output = _run(request, words)
        found = _from_unittest(_text(request.log))
        if found:
            return TestsOutput(command=" ".join(words), outcomes=found, log=str(request.log))
    return TestsOutput(command=" ".join(words), explanation=output.explanation, log=str(request.log))


def _has_settings(cwd: Path) -> bool:
    """Whether a tree has settings of its own for pytest."""
    sections = {"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
    alone = any((cwd / name).is_file() for name in ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"))
    return alone or any((cwd / name).is_file() and section in _text(cwd / name) for name, section in sections.items())


def _run(request: TestsRequest, words: list[str]) -> runner.RunOutput:
    return runner.run(
        runner.RunRequest(
            command=Command(text=" ".join(words), argv=words).importing(request.folders),
            cwd=request.cwd,
            device="cpu",
            python=request.python,
            timeout=request.timeout,
            sandbox=request.sandbox,
            writable=[request.writable],
            log=request.log,
        )
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _from_report(report: Path, output: runner.RunOutput, command: str) -> TestsOutput:
    made = TestsOutput(command=command, log=output.log or "")
    try:
        cases = ElementTree.parse(report).iter("testcase")
        for case in cases:
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            made.outcomes[name] = _outcome({child.tag for child in case})
            if case.get("file"):
                made.files[name] = f"{case.get('file')}:{int(case.get('line') or 0) + 1}"
    except ElementTree.ParseError as error:
        made.explanation = f"the report of the tests cannot be read: {error}"
    report.unlink()
    if not made.outcomes and not made.explanation:
        made.explanation = "no test was collected"
    return made


def _outcome(tags: set[str]) -> Outcome:
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def _from_unittest(text: str) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for name, where, outcome in _UNITTEST.findall(text):
        found[where if where.endswith(f".{name}") else f"{where}.{name}"] = _OUTCOMES.get(outcome, "failed")
    return found


class Lost(BaseModel):
    """A test that passed in the original and does not pass now."""

    name: str
    how: str
    place: str = ""


def lost(before: TestsOutput, after: TestsOutput) -> list[Lost]:
    """Tests that passed and are now gone, skipped or failing."""
    how = {"failed": "fails now", "skipped": "is skipped now", None: "is gone"}
    return [
        Lost(name=name, how=how[after.outcomes.get(name)], place=before.files.get(name, ""))
        for name, outcome in before.outcomes.items()
        if outcome == "passed" and after.outcomes.get(name) != "passed"
    ]
