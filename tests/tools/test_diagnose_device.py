"""The programs in the knowledge entries fail on the device as the entries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rows import run
from tests.tools.test_diagnose import run as ended
from tools.diagnose import diagnose
from tools.knowledge import entries


@pytest.mark.slow
def test_each_probe_shows_its_symptom(tmp_path: Path) -> None:
    probes = [(entry.id, entry.probe) for entry in entries() if entry.probe]
    assert len(probes) >= 35
    said = run([("", probe) for _, probe in probes], "tpu", tmp_path)
    wrong = []
    for (name, probe), text in zip(probes, said, strict=True):
        kind, _, message = text.partition(": ")
        source = f"program: {probe.strip().splitlines()[-1].strip()}"
        found = [cause.entry for cause in diagnose(ended(type=kind, message=message, source=source))]
        if found[:1] != [name]:
            wrong.append(f"{name}: {text[:200]!r} is taken for {found}")
    assert not wrong, "\n".join(wrong)
