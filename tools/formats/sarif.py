"""A scan's result as SARIF 2.1.0, in the form that GitHub code scanning takes."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections import Counter
from importlib import metadata
from typing import Any
from urllib.parse import quote

from tools.findings import Finding, Grade, Replacement, ScanResult, Skipped
from tools.rules import all_rules
from tools.rules.base import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
_LEVELS = {Grade.SAFE: "warning", Grade.UNSAFE: "warning", Grade.ADVICE: "note"}
_PRECISION = {Grade.SAFE: "very-high", Grade.UNSAFE: "high", Grade.ADVICE: "medium"}

Json = dict[str, Any]


def sarif(result: ScanResult) -> Json:
    """The log: one run, every rule described, paths relative to the scanned folder, columns in code points."""
    rules = all_rules()
    index = {rule.ID: number for number, rule in enumerate(rules)}
    seen: Counter[str] = Counter()
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {**_tool(), "rules": [_rule(rule) for rule in rules]}},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {BASE: {"description": {"text": "The folder that was scanned."}}},
                "invocations": [_invocation(result.skipped)],
                "results": [_result(finding, index[finding.rule], seen) for finding in result.findings],
            }
        ],
    }


def _tool() -> Json:
    try:
        version = metadata.version("torchtpu-agent")
    except metadata.PackageNotFoundError:
        return {"name": "torchtpu-agent"}
    return {"name": "torchtpu-agent", "version": version}


def _rule(rule: Rule) -> Json:
    text = inspect.cleandoc(rule.__doc__ or "")
    plain = text.replace("``", "`")
    return {
        "id": rule.ID,
        "name": "".join(part.title() for part in rule.NAME.split("-")),
        "shortDescription": {"text": _sentence(rule.MESSAGE)},
        "fullDescription": {"text": re.sub(r"\s+", " ", text.partition("\n\n")[0]).replace("``", "")},
        "help": {"text": text.replace("``", ""), "markdown": plain},
        "defaultConfiguration": {"level": _LEVELS[rule.GRADE]},
        "properties": {"tags": ["tpu", "migration", f"family-{rule.FAMILY}"], "precision": _PRECISION[rule.GRADE]},
    }


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:]


def _result(finding: Finding, rule_index: int, seen: Counter[str]) -> Json:
    text = _sentence(finding.message) + (f" ({finding.note})" if finding.note else "")
    result: Json = {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.grade],
        "message": {"text": text},
        "locations": [{"physicalLocation": _place(finding)}],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(finding, seen)},
        "properties": {"grade": str(finding.grade), "family": finding.family},
    }
    if finding.cell is not None:
        result["properties"] |= {"cell": finding.cell, "cellLine": finding.line}
    elif finding.edits:
        result["fixes"] = [_fix(finding)]
    return result


def _artifact(path: str) -> Json:
    return {"uri": quote(path, safe="/"), "uriBaseId": BASE}


def _place(finding: Finding) -> Json:
    """Where the finding is in the file itself; a notebook's lines are those of its JSON."""
    artifact = _artifact(finding.path)
    if finding.cell is not None:
        return {"artifactLocation": artifact, "region": {"startLine": finding.file_line or 1}}
    context = {"startLine": finding.line, "endLine": finding.line, "snippet": {"text": finding.source}}
    return {"artifactLocation": artifact, "region": _span(finding), "contextRegion": context}


def _span(at: Finding | Replacement) -> Json:
    return {"startLine": at.line, "startColumn": at.column, "endLine": at.end_line, "endColumn": at.end_column}


def _fingerprint(finding: Finding, seen: Counter[str]) -> str:
    """The same for the same line of code wherever it moves within its file; equal lines are numbered."""
    key = "\0".join([finding.rule, finding.path, re.sub(r"\s+", "", finding.source)])
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"


def _fix(finding: Finding) -> Json:
    replacements = [{"deletedRegion": _span(e), "insertedContent": {"text": e.text}} for e in finding.edits]
    return {
        "description": {"text": finding.note or f"Fix of {finding.rule} ({finding.grade})"},
        "artifactChanges": [{"artifactLocation": _artifact(finding.path), "replacements": replacements}],
    }


def _invocation(skipped: list[Skipped]) -> Json:
    notes = [_notification(each) for each in skipped]
    return {"executionSuccessful": True, **({"toolExecutionNotifications": notes} if notes else {})}


def _notification(skipped: Skipped) -> Json:
    place: Json = {"artifactLocation": _artifact(skipped.path)}
    if skipped.line:
        place["region"] = {"startLine": skipped.line}
    return {
        "level": "note",
        "message": {"text": f"Not examined: {skipped.reason}"},
        "locations": [{"physicalLocation": place}],
    }
