"""Sets two profiles side by side: what a change did to time, memory and each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tools.profiles.text import place, seconds, size

Profile = dict[str, Any]
_LINES = 12


def compare(before: Profile, after: Profile) -> dict[str, Any]:
    """The difference of two profiles, as JSON."""
    figures = {}
    for name in ("seconds", "model_flops", "bytes", "mfu", "peak_memory"):
        one, two = _figure(before, name), _figure(after, name)
        figures[name] = {"before": one, "after": two, "ratio": two / one if one and two is not None else None}
    return {
        "before": before["target"]["name"],
        "after": after["target"]["name"],
        "fits": [before["fits"], after["fits"]],
        "alike": before["scheduled_only"] == after["scheduled_only"],
        "figures": figures,
        "lines": _by_line(before, after),
    }


def _figure(profile: Profile, name: str) -> float | None:
    value = profile["memory"]["peak"] if name == "peak_memory" else (profile["time"] or {}).get(name)
    return None if value is None else float(value)


def _by_line(before: Profile, after: Profile) -> list[dict[str, Any]]:
    one, two = ({place(row): row["seconds"] for row in profile["lines"]} for profile in (before, after))
    rows: list[dict[str, Any]] = [
        {"line": name, "before": one.get(name, 0.0), "after": two.get(name, 0.0)} for name in {**one, **two}
    ]
    return sorted(rows, key=lambda row: -abs(row["after"] - row["before"]))


def compare_text(found: dict[str, Any]) -> str:
    """The difference as text."""
    return "\n".join(_text(found))


def _text(found: dict[str, Any]) -> Iterator[str]:
    yield f"{'':<14} {'before':>12} {'after':>12} {'ratio':>8}   ({found['before']}, {found['after']}; estimates)"
    shown: dict[str, Callable[[float], str]] = {"seconds": seconds, "bytes": size, "peak_memory": size}
    for name, row in found["figures"].items():
        write = shown.get(name, "{:.4g}".format)
        values = ["-" if row[side] is None else write(row[side]) for side in ("before", "after")]
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        yield f"{name:<14} {values[0]:>12} {values[1]:>12} {ratio:>8}"
    if not found["alike"]:
        yield "one of them is quick, the other whole: their times are by different models and cannot be compared"
    yield ""
    for row in found["lines"][:_LINES]:
        change = row["after"] - row["before"]
        sign = "+" if change >= 0 else "-"
        times = f"{seconds(row['before']):>10} -> {seconds(row['after']):>10}"
        yield f"{sign}{seconds(abs(change)):>11}  {times}  {row['line']}"
