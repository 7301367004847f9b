"""The programs in the knowledge entries fail on the device, or come to their end, as the entries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.rows import run
from tests.tools.test_diagnose import run as ended
from tools.diagnose import diagnose
from tools.knowledge import entries

_BATCH = 40
"""Probes that share a child process, whose time is limited."""


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(-(-sum(entry.probe is not None for entry in entries()) // _BATCH)))
def test_each_probe_shows_its_symptom(batch: int, tmp_path: Path) -> None:
    probed = [entry for entry in entries() if entry.probe][batch * _BATCH :][:_BATCH]
    said = run([("", entry.probe or "") for entry in probed], "tpu", tmp_path)
    wrong = []
    for entry, text in zip(probed, said, strict=True):
        kind, _, message = text.partition(": ")
        source = f"program: {(entry.probe or '').strip().splitlines()[-1].strip()}"
        found = [cause.entry for cause in diagnose(ended(type=kind, message=message, source=source))]
        if text != "None" if not entry.symptoms else found[:1] != [entry.id]:
            wrong.append(f"{entry.id}: {text[:200]!r} is taken for {found}")
    assert not wrong, "\n".join(wrong)
