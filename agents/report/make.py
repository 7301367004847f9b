"""Gathers the report of a run from its state and the artefacts in its folder."""

from __future__ import annotations

import importlib.metadata
import json
import platform

from agents.nodes.plan import reason_to_leave
from agents.report.model import Change, CommitLine, Left, NotExamined, Report
from agents.runs import RunFolder
from agents.stages.common import exit_code, headline
from agents.state import Delivery, State
from tools.findings import Finding, ScanResult


def make(state: State, delivery: Delivery, folder: RunFolder) -> Report:
    """The report of a run that has come to its end."""
    source, left = state.origin, _findings_left(folder)
    device = next((run.device for run in reversed(state.runs) if run.device), None)
    assert state.assessment is not None
    return Report(
        run=state.run_id,
        created=state.request.created,
        source=source.name,
        source_kind=source.kind,
        scope=source.scope,
        base=source.base,
        notes=source.notes,
        headline=headline(state.verdicts),
        exit_code=int(exit_code(state.verdicts)),
        attempts=state.attempt,
        entries=state.entries,
        assessment=state.assessment,
        changes=changes(folder),
        left=[_left(finding, state.request.unsafe_fixes) for finding in left.findings],
        not_examined=[NotExamined(path=s.path, reason=s.reason) for s in left.skipped],
        commits=[
            CommitLine(sha=c.sha, rule=c.rule, title=c.title, files=len(c.files), findings=c.findings)
            for c in state.commits
        ],
        runs=state.runs,
        diagnoses=state.diagnoses,
        verdicts=state.verdicts,
        assistance=state.assistance,
        delivery=delivery,
        device=device,
        versions=_versions(device),
        durations={name: round(seconds, 3) for name, seconds in state.durations.items()},
    )


def _findings_left(folder: RunFolder) -> ScanResult:
    return ScanResult.model_validate_json((folder.path / "findings-left.json").read_bytes())


def changes(folder: RunFolder) -> list[Change]:
    """What the patch node wrote down about each finding that it fixed."""
    return [Change.model_validate(item) for item in json.loads((folder.path / "changes.json").read_bytes())]


def _left(finding: Finding, unsafe_fixes: bool) -> Left:
    why = reason_to_leave(finding.grade, finding.fixable, unsafe_fixes)
    return Left(
        rule=finding.rule,
        grade=finding.grade.value,
        path=finding.path,
        line=finding.line,
        cell=finding.cell,
        message=finding.message,
        source=finding.source.strip(),
        why=why or "its fix did not apply here",
        note=finding.note,
    )


def version() -> str:
    """Our own version."""
    try:
        return importlib.metadata.version("torchtpu-agent")
    except importlib.metadata.PackageNotFoundError:
        return "development tree"


def _versions(device: dict[str, object] | None) -> dict[str, str]:
    of_device = (device or {}).get("versions")
    known = {str(k): str(v) for k, v in of_device.items()} if isinstance(of_device, dict) else {}
    return {"torchtpu-agent": version(), "python": platform.python_version(), **known}
