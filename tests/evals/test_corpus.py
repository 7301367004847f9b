"""The study of other people's packages: what it records, and how its figures are made."""

from __future__ import annotations

import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from evals.corpus import review
from evals.corpus.packages import PACKAGES, Package
from evals.corpus.study import Record, study
from tools.findings import Finding, Grade

_CODE = "import torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
_SHARED = """import small.code
from shared import X


def test_shared():
    assert X == 1
"""
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


def test_tests_that_a_wheel_leaves_out_judge_both_trees(tmp_path: Path) -> None:
    package = wheel(tmp_path, text="device =")
    with tarfile.open(tmp_path / "small-1.0.tar.gz", "w:gz") as sdist:
        for name, text in (("tests/shared.py", "X = 1\n"), ("tests/test_x.py", _SHARED), ("setup.py", "raise\n")):
            data = text.encode()
            member = tarfile.TarInfo(f"small-1.0/{name}")
            member.size = len(data)
            sdist.addfile(member, io.BytesIO(data))
    package = replace(package, tests=("tests/test_x.py",), suite="sdist")
    record = study(package, tmp_path / "out", tmp_path, 240)
    assert record.tests == {"passed": 1}
    assert record.holds
    assert not (tmp_path / "out/small/setup.py").exists()


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
    old, new = ({key for key, _ in review.sample([record], "seed")} for record in (before, after))
    assert len(old) == len(new) == review.SIZE
    assert len(old - new) <= 1
    rest = {key for key, _ in review.sample([after], "seed", without=new)}
    assert len(rest) == 200
    assert not rest & new


def said(grade: Grade, verdict: str, *, only_safe: bool = False) -> review.Verdict:
    return review.Verdict(key="k", grade=grade, verdict=verdict, only_safe=only_safe)


def test_only_what_is_right_counts() -> None:
    found = review.precision(
        [
            said(Grade.SAFE, "right"),
            said(Grade.ADVICE, "wrong"),
            said(Grade.SAFE, "doubtful"),
            said(Grade.SAFE, "right", only_safe=True),
        ]
    )
    assert (found["all"]["reviewed"], found["all"]["right"], found["all"]["wrong"]) == (3, 1, 1)
    assert (found["safe"]["reviewed"], found["safe"]["right"], found["safe"]["doubtful"]) == (3, 2, 1)


def test_lines_without_a_finding_are_missed() -> None:
    record = Record(name="p", version="1", findings=[finding(3)])
    marked = review.Marked(package="p", path="a.py", lines=[3, 5, 7], fine={7: "nothing reads it"})
    found = review.recall([record], [marked])
    assert found == {"files": 1, "marked": 3, "found": 1, "fine": 1, "missed": ["p:a.py:5"]}


def test_kept_data_is_well_formed() -> None:
    names = {package.name for package in PACKAGES}
    for each in review.ROUNDS:
        kept = review.verdicts(each.number)
        assert {v.verdict for v in kept} <= {"right", "wrong", "doubtful"}
        assert len({v.key for v in kept}) == len(kept) >= review.SIZE
        assert all(v.reason for v in kept if v.verdict != "right")
        assert {v.key.partition(":")[0] for v in kept} <= names
    marks = [mark for number in (1, 2) for mark in review.marks(number)]
    assert {mark.package for mark in marks} <= names
    assert all(set(mark.fine) <= set(mark.lines) for mark in marks)
