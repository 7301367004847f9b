"""The report as a typed document; its JSON schema is published in docs/schema and versioned."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.state import Assessment, Assistance, Delivery, Diagnosis, Entry, RunRecord, Verdict

VERSION: Literal["1"] = "1"


class Change(BaseModel):
    """A finding that was fixed. The place is the one before its rule was applied."""

    rule: str
    grade: str
    path: str
    line: int
    cell: int | None = None
    message: str
    note: str | None = Field(default=None, description="what the fix assumes")
    commit: str


class Left(BaseModel):
    """A finding that is left, in the migrated tree, and why."""

    rule: str
    grade: str
    path: str
    line: int
    cell: int | None = None
    message: str
    source: str
    why: str
    note: str | None = Field(default=None, description="what a person may do about it")


class NotExamined(BaseModel):
    """A file that no rule could look at."""

    path: str
    reason: str


class CommitLine(BaseModel):
    """One commit of the branch."""

    sha: str
    rule: str
    title: str
    files: int
    findings: int


class Report(BaseModel):
    """What `torchtpu-agent migrate` did and what holds."""

    model_config = ConfigDict(title="torchtpu-agent migration report")

    schema_version: Literal["1"] = VERSION
    run: str
    created: str
    source: str
    source_kind: Literal["repository", "folder", "address"]
    scope: str
    base: str
    notes: list[str]
    headline: str = Field(description="highest stage below which every stage passed, or 'none'")
    exit_code: int
    attempts: int
    entries: list[Entry]
    assessment: Assessment
    changes: list[Change]
    left: list[Left]
    not_examined: list[NotExamined]
    commits: list[CommitLine]
    runs: list[RunRecord]
    diagnoses: list[Diagnosis]
    verdicts: list[Verdict]
    assistance: Assistance | None = Field(default=None, description="the language model's part, where one was named")
    delivery: Delivery
    device: dict[str, Any] | None
    versions: dict[str, str]
    durations: dict[str, float] = Field(description="seconds per node")


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a report."""
    made = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def schema_text() -> str:
    """The schema as it is published in `docs/schema`."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"
