"""Scan results as text, JSON and SARIF, from a scan of real files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tools.findings import Finding, Grade, ScanResult, Skipped
from tools.formats import render, scan_schema
from tools.rules import all_rules
from tools.scan import scan

DOCS = Path(__file__).parents[2] / "docs"

NOTEBOOK = """{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["# cuda\\n"]},
  {
   "cell_type": "code",
   "source": [
    "import torch\\n",
    "\\n",
    "x = torch.ones(2).cuda()"
   ]
  }
 ],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}
"""


@pytest.fixture
def result(tmp_path: Path) -> ScanResult:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "tr\u00e4in.py").write_text(
        "import torch\nname = '\U0001f600'; m = net.cuda()\nm = net.cuda()\n"
    )
    (tmp_path / "explore.ipynb").write_text(NOTEBOOK)
    (tmp_path / "broken.py").write_text("import torch\nx = torch.ones(2).cuda(\n")
    return scan(tmp_path, select=["TPU104"])


def test_text_has_one_line_a_finding(result: ScanResult) -> None:
    lines = render(result, "text").splitlines()
    assert lines[0].startswith("a folder/tr\u00e4in.py:2:17: TPU104 ")
    assert lines[0].endswith("[safe]")
    assert any(line.startswith("explore.ipynb:cell 1:3:5: TPU104 ") for line in lines)
    assert any(re.match(r"broken\.py:2: skipped: syntax error", line) for line in lines)
    assert lines[-1] == "3 findings in 2 files (3 safe, 0 unsafe, 0 advice); 3 files examined; 1 skipped"


def test_names_cannot_forge_lines() -> None:
    result = ScanResult(root="/r", files=1, skipped=[Skipped(path="a\nb.py:1:1: TPU104", reason="x\x1b[31m")])
    first, _ = render(result, "text").splitlines()
    assert first == "a\\nb.py:1:1: TPU104: skipped: x\\x1b[31m"


def test_json_reads_back_and_follows_its_schema(result: ScanResult) -> None:
    written = render(result, "json")
    assert ScanResult.model_validate_json(written) == result
    jsonschema.validate(json.loads(written), json.loads(scan_schema()))


def test_published_schema_is_current() -> None:
    assert (DOCS / "schema" / "scan-v1.json").read_text() == scan_schema()


def test_unknown_format_is_refused(result: ScanResult) -> None:
    with pytest.raises(ValueError, match="text, json or sarif"):
        render(result, "xml")  # type: ignore[arg-type]


def _run(result: ScanResult) -> dict[str, Any]:
    log = json.loads(render(result, "sarif"))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    return run  # type: ignore[no-any-return]


def test_sarif_describes_every_rule(result: ScanResult) -> None:
    driver = _run(result)["tool"]["driver"]
    assert driver["name"] == "torchtpu-agent"
    assert [rule["id"] for rule in driver["rules"]] == [rule.ID for rule in all_rules()]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"] and rule["fullDescription"]["text"]
        assert rule["help"]["text"] and rule["help"]["markdown"]
        assert len(rule["shortDescription"]["text"]) <= 1024 and len(rule["fullDescription"]["text"]) <= 1024
        assert rule["defaultConfiguration"]["level"] in ("note", "warning", "error")


def test_sarif_results_are_complete(result: ScanResult) -> None:
    run = _run(result)
    for each in run["results"]:
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        assert each["message"]["text"]
        (location,) = each["locations"]
        place = location["physicalLocation"]["artifactLocation"]
        assert place["uriBaseId"] in run["originalUriBaseIds"]
        assert re.fullmatch(r"[A-Za-z0-9._~%/!$&'()*+,;=:@-]+", place["uri"]) and not place["uri"].startswith("/")
        assert location["physicalLocation"]["region"]["startLine"] >= 1
    prints = [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_columns_count_code_points(result: ScanResult) -> None:
    run = _run(result)
    assert run["columnKind"] == "unicodeCodePoints"
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 17, "endLine": 2, "endColumn": 27}


def test_sarif_fixes_give_the_fixed_file(result: ScanResult, tmp_path: Path) -> None:
    run = _run(result)
    (change,) = run["results"][0]["fixes"][0]["artifactChanges"]
    lines = (tmp_path / "a folder" / "tr\u00e4in.py").read_text().splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    text = "".join(lines)
    for each in reversed(change["replacements"]):
        region = each["deletedRegion"]
        first = starts[region["startLine"] - 1] + region["startColumn"] - 1
        last = starts[region["endLine"] - 1] + region["endColumn"] - 1
        text = text[:first] + each["insertedContent"]["text"] + text[last:]
    assert "m = net.to(DEVICE_TYPE)\nm = net.cuda()\n" in text and "DEVICE_TYPE = " in text
    compile(text, "fixed", "exec")


def test_sarif_points_into_a_notebooks_own_lines(result: ScanResult) -> None:
    (found,) = [
        r
        for r in _run(result)["results"]
        if "explore" in r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    ]
    line = found["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert ".cuda()" in NOTEBOOK.splitlines()[line - 1]
    assert found["properties"]["cell"] == 1 and "fixes" not in found


def test_sarif_tells_what_was_skipped(result: ScanResult) -> None:
    (invocation,) = _run(result)["invocations"]
    assert invocation["executionSuccessful"] is True
    (note,) = invocation["toolExecutionNotifications"]
    assert "syntax error" in note["message"]["text"]
    assert note["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def _finding(line: int, source: str) -> Finding:
    return Finding(
        rule="TPU104", family="A", grade=Grade.SAFE, path="a.py", line=line, column=1, end_line=line, end_column=2,
        message="m", source=source, fixable=False,
    )  # fmt: skip


def test_fingerprints_do_not_depend_on_the_line_number() -> None:
    def prints(*findings: Finding) -> list[str]:
        results = _run(ScanResult(root="/r", findings=list(findings)))["results"]
        return [r["partialFingerprints"]["primaryLocationLineHash"] for r in results]

    before = prints(_finding(3, "x.cuda()"), _finding(9, "x.cuda()"))
    assert prints(_finding(5, "    x.cuda()"), _finding(11, "x.cuda()")) == before
    assert before[0] != before[1]
