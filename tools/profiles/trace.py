"""Writes a profile as a trace that Perfetto and chrome://tracing show."""

from __future__ import annotations

from typing import Any

from tools.profiles.text import BASIS, place

Profile = dict[str, Any]
_CORE, _COPIES = 1, 2


def trace(profile: Profile) -> dict[str, Any]:
    """The schedule as trace events: instructions one after another as they are estimated, memory as a counter."""
    rows = {row["name"]: row for row in profile["operators"]}
    events: list[dict[str, Any]] = [
        _named("process_name", 0, f"{profile['target']['name']} ({BASIS})"),
        _named("thread_name", _CORE, "core"),
        _named("thread_name", _COPIES, "copies beside it"),
    ]
    now = 0.0
    timeline = profile["memory"]["timeline"]
    for position, name in enumerate(profile["order"]):
        row = rows[name]
        length = row["seconds"] * 1e6
        events.append(_event(row, now, length))
        if timeline:
            held = timeline[min(len(timeline) - 1, position * len(timeline) // len(profile["order"]))]
            events.append({"ph": "C", "pid": 1, "name": "HBM", "ts": now, "args": {"bytes": held}})
        now += length
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"basis": BASIS}}


def _named(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": thread, "name": kind, "args": {"name": name}}


def _event(row: dict[str, Any], start: float, length: float) -> dict[str, Any]:
    about = {key: row[key] for key in ("name", "opcode", "phase", "flops", "bytes", "cycles", "bound", "source")}
    operator = (row["op"] or row["opcode"]).removeprefix("aten.").removesuffix(".default")
    return {
        "ph": "X",
        "pid": 1,
        "tid": _COPIES if row["asynchronous"] else _CORE,
        "name": operator,
        "cat": row["phase"] or "compiler",
        "ts": start,
        "dur": length,
        "args": {**about, "line": place(row)},
    }
