"""A repository's own tests are run with its own settings, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.own_tests import TestsRequest, run_tests


@pytest.mark.parametrize("own", ["", "[pytest]\nmarkers = quick: short\n"])
def test_settings_of_a_folder_above_are_not_taken(tmp_path: Path, own: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    tree = tmp_path / "above" / "tree"
    (tree / "checks").mkdir(parents=True)
    (tree / "checks" / "test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
    if own:
        (tree / "tox.ini").write_text(own)
    found = run_tests(TestsRequest(cwd=tree, writable=tmp_path, log=tmp_path / "log"))
    assert found.outcomes == {"checks.test_sum::test_sum": "passed"}, (tmp_path / "log").read_text()
