"""Runs the probes of knowledge entries: small programs that show whether a fact still holds with what is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from tools import run as runner
from tools.commands import parse
from tools.diagnose import diagnose
from tools.knowledge import Entry

SECONDS = 120.0


class Standing(StrEnum):
    """What a probe came to."""

    HOLDS = "holds"
    NO_LONGER = "no longer holds"
    NOT_RUN = "not run"


class ProbeRecord(BaseModel):
    """One probe, run once."""

    entry: str
    standing: Standing
    said: str = Field(description="what the probe's failure was taken for, or how it ended")
    versions: dict[str, str] = Field(default={}, description="packages it was run with")
    device: str = ""
    seconds: float = 0.0


def probe(
    entry: Entry,
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto",
    python: Path | None = None,
    timeout: float = SECONDS,
    sandbox: bool = True,
) -> ProbeRecord:
    """Run an entry's probe in a child of its own and see whether its failure is taken for the entry.

    Args:
        entry: One with a probe.
        device: Where to run it.
        python: Interpreter of the probe.
        timeout: Seconds after which it is ended.
        sandbox: Whether it runs under bubblewrap where that is installed.
    """
    if entry.probe is None:
        return ProbeRecord(entry=entry.id, standing=Standing.NOT_RUN, said="it has no probe")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "probe.py").write_text(entry.probe, encoding="utf-8")
        request = runner.RunRequest(
            command=parse("python probe.py"),
            cwd=Path(folder),
            device=device,
            python=python,
            timeout=timeout,
            sandbox=sandbox,
        )
        output = runner.run(request)
    standing, said = judge(entry, output)
    info = output.device or {}
    versions = {str(name): str(number) for name, number in (info.get("versions") or {}).items()}
    return ProbeRecord(
        entry=entry.id, standing=standing, said=said, versions=versions, device=str(info.get("kind") or ""),
        seconds=round(output.duration, 1),
    )  # fmt: skip


def judge(entry: Entry, output: runner.RunOutput) -> tuple[Standing, str]:
    """Whether a probe's run shows what its entry says: its symptom, or for advice that it comes to its end."""
    if not entry.symptoms and output.outcome == "completed":
        return Standing.HOLDS, "it comes to its end, as the entry says"
    known = [cause.entry for cause in diagnose(output)]
    if entry.id in known:
        return Standing.HOLDS, output.explanation
    if output.outcome in ("not-started", "time-limit") and not known:
        return Standing.NOT_RUN, output.explanation
    taken = f"taken for {', '.join(known)}: " if known else ""
    return Standing.NO_LONGER, f"{taken}{output.explanation}"


def no_longer(records: Sequence[ProbeRecord]) -> list[str]:
    """Entries whose probe shows something else now."""
    return [record.entry for record in records if record.standing is Standing.NO_LONGER]
