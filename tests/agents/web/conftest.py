"""Servers on loopback, a browser, and runs to look at, for the tests of the pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from agents import runs
from agents.runs import RunFolder
from tests.agents.web.serving import Served, ServedByCommand


@pytest.fixture
def served() -> Iterator[Served]:
    """A server without a token."""
    with Served() as server:
        yield server


@pytest.fixture
def locked() -> Iterator[Served]:
    """A server that wants its token."""
    with Served(token="a-token-that-nobody-knows") as server:
        yield server


@pytest.fixture
def command(tmp_path: Path, home: Path) -> Iterator[ServedByCommand]:
    """`torchtpu-agent serve` in a process of its own."""
    with ServedByCommand(tmp_path) as server:
        yield server


# For a module: its event loop would be in the way of tests elsewhere that have one of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; where the program is not on the machine the test cannot be made."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A page that fails the test on errors of scripts and on what the policy had to stop."""
    faults: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)  # a busy machine is no fault of the pages
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
    yield page
    page.close()
    assert faults == []


@pytest.fixture
def dry_run(cli: Callable[..., object]) -> Callable[[Path], RunFolder]:
    """Makes a finished run without running a program."""

    def make(repo: Path) -> RunFolder:
        before = {folder.id for folder in runs.every()}
        ended = cli("migrate", repo, "--dry-run", "--entry", "python train.py")
        assert ended.code == 0, ended.err
        return next(folder for folder in runs.every() if folder.id not in before)

    return make
