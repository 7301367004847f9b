"""What a program ran: operators, host syncs, shapes, fallbacks, graph breaks and compilations, with the user's lines.

A launcher puts `variables(folder)` into the environment of a run; each of its processes then leaves one file there,
which `read` gives back. Without torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER_VARIABLE = "TORCHTPU_TRACE"
# A compilation then happens inside the operator that needs it, and not on a thread of the backend's, later.
_BLOCKING = "TORCH_TPU_LAUNCH_BLOCKING"
# Reading the losses of a run, as the launcher does, is itself a wait for the device.
_LOSSES = "TORCHTPU_LOSSES"


def variables(folder: Path) -> dict[str, str]:
    """The environment of a run that is to be traced into a folder."""
    return {FOLDER_VARIABLE: str(folder), _BLOCKING: "1", _LOSSES: "0"}


def read(folder: Path) -> list[dict[str, Any]]:
    """What each process of a run wrote, the busiest first; see `torchtpu.tracing.observer.Observer.record`."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda one: -sum(op["count"] for op in one["operators"]))


def chrome(processes: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs of operators, compilations and steps as a Chrome trace, which Perfetto opens too."""
    events: list[dict[str, Any]] = []
    for number, process in enumerate(processes):
        rank = process["rank"]
        name = f"rank {rank}" if rank is not None else f"process {process['pid']}"
        events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}})
        events += [{**event, "pid": number} for event in process["events"]]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
