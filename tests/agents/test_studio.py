"""The graphs that langgraph.json names open, and run from nothing but their state."""

from __future__ import annotations

import importlib.util
import json

from agents import runs, sessions
from agents.progress import Silent
from agents.state import Request
from tests.agents.conftest import ROOT

WHEN = "2026-01-01T00:00:00+00:00"


def graph(name: str):
    path, _, function = json.loads((ROOT / "langgraph.json").read_text())["graphs"][name].partition(":")
    spec = importlib.util.spec_from_file_location(f"served_{name}", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)()


def test_migrate_runs_from_a_request(repo):
    request = Request(source=str(repo), created=WHEN, dry_run=True, device="cpu")
    ended = graph("migrate").invoke({"run_id": "abc123", "request": request})
    assert ended["delivery"].kind == "nothing"
    assert runs.find("abc123").report.is_file()


def test_debug_answers_on_a_session(repo, monkeypatch):
    sessions.create(Request(source=str(repo), created=WHEN, device="cpu"), "one", Silent())
    monkeypatch.setenv("TORCHTPU_SESSION", "one")
    monkeypatch.delenv("TORCHTPU_MODEL", raising=False)
    ended = graph("debug").invoke({"said": "AssertionError: Torch not compiled with CUDA enabled"})
    assert "cuda-not-compiled" in ended["messages"][-1].content
    assert set(graph("debug").get_graph().nodes) >= {"listen", "think", "act", "look_up"}
