"""What probes of knowledge entries came to on this machine, kept in the state directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agents.runs import home, write_whole
from tools.probes import ProbeRecord, no_longer


class _Records(BaseModel):
    probes: dict[str, ProbeRecord] = {}


def _file() -> Path:
    return home() / "knowledge.json"


def records() -> dict[str, ProbeRecord]:
    """The newest record of each entry that was probed here; a damaged file counts as none."""
    try:
        return _Records.model_validate_json(_file().read_bytes()).probes
    except (OSError, ValidationError):
        return {}


def refuted() -> list[str]:
    """Entries whose probe no longer fails here."""
    return no_longer(list(records().values()))


def keep(made: Iterable[ProbeRecord]) -> None:
    """Write new records over the old ones."""
    merged = records() | {record.entry: record for record in made}
    _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(_file(), _Records(probes=merged).model_dump_json(indent=1))
