"""The JSON side: its description against generated requests, health, readiness and figures."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import schemathesis

from tests.agents.web.serving import Served


def asked(operation, headers: dict[str, str]) -> list[int]:
    """How generated requests of one operation were answered."""
    seen: list[int] = []

    @hypothesis.given(case=operation.as_strategy())
    @hypothesis.settings(
        max_examples=8, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    def ask(case: schemathesis.Case) -> None:
        seen.append(case.call(headers=headers).status_code)
        assert seen[-1] < 500, (case.method, case.formatted_path, case.body)

    ask()
    return seen


@pytest.mark.timeout(240)
def test_no_generated_request_is_too_much(locked: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    headers = {"authorization": f"Bearer {locked.token}"}
    schema = schemathesis.openapi.from_url(f"{locked.url}/api/openapi.json", headers=headers)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 8
    for operation in operations:
        assert asked(operation, headers), operation.label
    with locked.visit(headers=headers) as program:
        assert program.get(f"/api/runs/{folder.id}").json()["report"]["run"] == folder.id


def test_runs_can_be_listed_and_narrowed_by_a_program(served: Served, dry_run, repo: Path) -> None:
    folder = dry_run(repo)
    with served.visit() as program:
        assert [row["id"] for row in program.get("/api/runs").json()] == [folder.id]
        assert program.get("/api/runs", params={"state": "running"}).json() == []
        assert program.get("/api/runs", params={"text": "no-such-thing"}).json() == []
        assert program.get("/api/runs", params={"verdict": "passed"}).json()[0]["headline"] == "none"
        missing = program.get("/api/runs/abc")
        assert missing.status_code == 404 and missing.json()["remedy"]


def test_health_readiness_and_figures(served: Served, dry_run, repo: Path, home: Path) -> None:
    dry_run(repo)
    with served.visit() as probe:
        assert probe.get("/healthz").json()["ok"] is True
        assert probe.get("/readyz").json()["ok"] is True
        probe.get("/runs/some-run-that-is-not-there")
        figures = probe.get("/metrics").text
        assert 'torchtpu_runs{state="finished",verdict=' in figures
        assert 'torchtpu_http_requests_total{method="GET",route="/runs/{run_id}",status="404"}' in figures
        assert "some-run-that-is-not-there" not in figures
        assert "torchtpu_runs_working 0.0" in figures and "process_resident_memory_bytes" in figures


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_state_directory_that_cannot_be_written_is_not_ready(served: Served, home: Path) -> None:
    home.chmod(0o500)
    try:
        assert served.visit().get("/readyz").status_code == 503
    finally:
        home.chmod(0o700)


def test_a_state_directory_that_is_a_file_is_not_ready(served: Served, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHTPU_HOME", str(tmp_path / "file"))
    answer = served.visit().get("/readyz")
    assert answer.status_code == 503 and answer.json()["ok"] is False
