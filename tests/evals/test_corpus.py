"""The study of other people's packages: what it records, and how its figures are made."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from evals.corpus import review
from evals.corpus.packages import PACKAGES, Package
from evals.corpus.study import Record, study
from tools.findings import Finding, Grade

_CODE = "import torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
_TEST = """import pathlib


def test_place():
    assert {text!r} in pathlib.Path(__file__).with_name("code.py").read_text()
"""


def wheel(folder: Path, *, text: str) -> Package:
    """A package whose own test looks for a text in its code."""
    with zipfile.ZipFile(folder / "small-1.0-py3-none-any.whl", "w") as file:
        file.writestr("small/code.py", _CODE)
        file.writestr("small/test_code.py", _TEST.format(text=text))
    return Package("small", "1.0", tests=("small",))


def finding(line: int, grade: Grade = Grade.SAFE) -> Finding:
    return Finding(
        rule="TPU101", family="A", grade=grade, path="a.py", line=line, column=1, end_line=line, end_column=9,
        message="m", source="s", fixable=True,
    )  # fmt: skip


def test_study_of_a_package_that_keeps_its_tests(tmp_path: Path) -> None:
    record = study(wheel(tmp_path, text="device ="), tmp_path / "out", tmp_path, 240)
    assert (record.files, record.changed, record.grades) == (2, 1, {"safe": 1})
    assert record.tests == {"passed": 1}
    assert record.holds


def test_study_of_a_package_whose_test_fails_afterwards(tmp_path: Path) -> None:
    record = study(wheel(tmp_path, text="torch.cuda.is_available"), tmp_path / "out", tmp_path, 240)
    assert record.test_changes == ["small.test_code.test_place: passed -> failure"]
    assert not record.holds


def test_every_package_is_pinned_once() -> None:
    assert len({package.name for package in PACKAGES}) == len(PACKAGES) >= 25
    assert all(package.version for package in PACKAGES)


def test_interval_of_a_share() -> None:
    # Newcombe 1998, table I: 15 of 148.
    assert review.wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert review.wilson(0, 0) == (0.0, 1.0)
    assert review.wilson(200, 200)[1] == 1.0


def test_sample_changes_only_by_what_comes_or_goes() -> None:
    before = Record(name="p", version="1", findings=[finding(n) for n in range(1, 400)])
    after = Record(name="p", version="1", findings=[finding(n) for n in range(1, 401)])
    old, new = ({key for key, _ in review.sample([record])} for record in (before, after))
    assert len(old) == len(new) == review.SIZE
    assert len(old - new) <= 1


def test_only_what_is_right_counts() -> None:
    chosen = [("a", finding(1)), ("b", finding(2, Grade.ADVICE)), ("c", finding(3)), ("d", finding(4))]
    said = [review.Verdict(key=k, verdict=v) for k, v in (("a", "right"), ("b", "wrong"), ("c", "doubtful"))]
    found = review.precision(chosen, said)
    assert (found["all"]["sampled"], found["all"]["reviewed"], found["all"]["right"]) == (4, 3, 1)
    assert (found["safe"]["reviewed"], found["safe"]["doubtful"]) == (2, 1)


def test_lines_without_a_finding_are_missed() -> None:
    record = Record(name="p", version="1", findings=[finding(3)])
    found = review.recall([record], [review.Marked(package="p", path="a.py", lines=[3, 5])])
    assert found == {"marked": 2, "found": 1, "missed": ["p:a.py:5"]}


def test_kept_data_is_well_formed() -> None:
    names = {package.name for package in PACKAGES}
    said = review.verdicts()
    assert {v.verdict for v in said} <= {"right", "wrong", "doubtful"}
    assert len({v.key for v in said}) == len(said)
    assert all(v.reason for v in said if v.verdict != "right")
    assert {v.key.partition(":")[0] for v in said} | {m.package for m in review.marks()} <= names
