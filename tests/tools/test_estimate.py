"""An estimate finds the step that was recorded for it."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools import commands
from tools import profile as profiler
from tools.errors import UserError
from tools.estimate import estimate


def test_program_may_write_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    request = profiler.ProfileRequest(
        command=commands.parse("python train.py"), cwd=folder, original=folder, target="v6e-1", state=tmp_path / "state"
    )

    def profiled(made: profiler.ProfileRequest, _tell: Any) -> Any:
        place = profiler.place_of(made)
        place.mkdir(parents=True)
        (place / profiler.STEP).write_bytes(gzip.compress(b"{}"))
        (folder / "checkpoint.pt").write_text("written by the program")
        return SimpleNamespace(outcome="ok", profile={"step": {}})

    def lowered(_request: profiler.ProfileRequest, scratch: Path, _mode: str) -> Path:
        (scratch / "parts.json").write_text("[]")
        return scratch / "parts.json"

    monkeypatch.setattr(profiler, "profile", profiled)
    monkeypatch.setattr(profiler, "run_lowering", lowered)
    with pytest.raises(UserError, match="No program of the step could be compiled"):
        estimate(request)
