"""Every rule is held to the cases written in its class, and to what holds for all rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.engine import examine, fix
from tools.project import TextProject
from tools.rules import all_rules
from tools.rules.base import Invalid, Rule, Valid

VALID = [(rule, case if isinstance(case, Valid) else Valid(case)) for rule in all_rules() for case in rule.VALID]
INVALID = [(rule, case) for rule in all_rules() for case in rule.INVALID]


def name(value: object) -> str:
    return value.ID if isinstance(value, Rule) else ""


def project(path: str, data: bytes) -> TextProject:
    return TextProject(Path(), texts={path: data})


@pytest.mark.parametrize(("rule", "case"), VALID, ids=name)
def test_leaves_alone(rule: Rule, case: Valid) -> None:
    data = case.text.encode()
    seen = examine(case.path, data, project(case.path, data), [rule])
    assert not seen.skipped
    assert seen.matches == []


@pytest.mark.parametrize(("rule", "case"), INVALID, ids=name)
def test_finds_and_fixes(rule: Rule, case: Invalid) -> None:
    data = case.text.encode()
    seen = examine(case.path, data, project(case.path, data), [rule])
    assert not seen.skipped
    assert len(seen.matches) == case.count
    fixed = fix(case.path, data, project(case.path, data), [rule], unsafe=case.unsafe)
    assert fixed.data.decode() == (case.text if case.fixed is None else case.fixed)


@pytest.mark.parametrize(("rule", "case"), INVALID, ids=name)
def test_fixing_again_changes_nothing(rule: Rule, case: Invalid) -> None:
    data = case.text.encode()
    once = fix(case.path, data, project(case.path, data), [rule], unsafe=case.unsafe).data
    assert fix(case.path, once, project(case.path, once), [rule], unsafe=case.unsafe).data == once


@pytest.mark.parametrize(("rule", "case"), [pair for pair in INVALID if pair[1].fixed is not None], ids=name)
def test_fixed_form_asks_for_no_other_fix(rule: Rule, case: Invalid) -> None:
    assert case.fixed is not None
    data = case.fixed.encode()
    seen = examine(case.path, data, project(case.path, data), [rule])
    assert not [match for _, match in seen.matches if match.fix]


@pytest.mark.parametrize(("rule", "case"), [pair for pair in INVALID if pair[1].path.endswith(".py")], ids=name)
def test_survives_other_line_endings(rule: Rule, case: Invalid) -> None:
    data = case.text.replace("\n", "\r\n").encode()
    wanted = (case.text if case.fixed is None else case.fixed).replace("\n", "\r\n")
    assert fix(case.path, data, project(case.path, data), [rule], unsafe=case.unsafe).data.decode() == wanted


@pytest.mark.parametrize("rule", all_rules(), ids=name)
def test_is_described_and_has_cases(rule: Rule) -> None:
    assert rule.__doc__ and rule.MESSAGE and rule.TRIGGERS
    assert rule.VALID and rule.INVALID
    assert rule.FAMILY in "ABCDEFGHIJKLMNOPQR"
