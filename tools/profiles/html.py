"""Writes a profile as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from typing import Any

from tools.profiles.text import BASIS, place, seconds, size, text

Profile = dict[str, Any]
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1b1f;background:#fff}
pre{background:#f4f5f7;padding:1rem;overflow:auto;font-size:13px} table{border-collapse:collapse;width:100%}
td,th{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;font-variant-numeric:tabular-nums}
td.n,th.n{text-align:right} .bar{background:#3b6fb6;height:.8rem} .bar.b{background:#c4703a} svg{width:100%;height:auto}
code{font-size:13px} .note{color:#555}
@media (prefers-color-scheme:dark){body{background:#16171a;color:#e6e6e8}pre{background:#222429}
td,th{border-color:#3a3c42}.note{color:#aaa}svg text{fill:#e6e6e8}}
"""
_COLOURS = {
    "matrix": "#3b6fb6", "memory": "#c4703a", "vector": "#5a9e5a", "kernel": "#8a5ab0", "overhead": "#999999",
}  # fmt: skip
_WIDE, _HIGH, _EDGE = 900, 320, 50


def page(profile: Profile, title: str) -> str:
    """The page: summary, time by line, roofline, memory over the schedule."""
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="note">{html.escape(BASIS)}.</p>',
        f"<pre>{html.escape(text(profile))}</pre>",
    ]
    if profile["time"]:
        parts += ["<h2>Time by source line</h2>", _lines(profile), "<h2>Roofline</h2>", roofline(profile)]
    parts += ["<h2>Memory over the schedule</h2>", memory_plot(profile)]
    parts += ["<h2>Instructions</h2>", _instructions(profile)] if profile["operators"] else []
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{body}</body></html>\n'
    )


def _lines(profile: Profile) -> str:
    longest = max((row["seconds"] for row in profile["lines"]), default=0.0) or 1.0
    rows = []
    for row in profile["lines"][:60]:
        backward = row["phases"].get("backward", 0.0)
        other = row["seconds"] - backward
        bars = "".join(
            f'<div class="bar {kind}" style="width:{100 * part / longest:.2f}%"></div>'
            for kind, part in (("", other), ("b", backward))
            if part
        )
        operators = ", ".join(name.split(".")[1] for name in row["ops"])
        inner = "".join(
            f"<br><code>in {html.escape(one['place'])}</code> {seconds(one['seconds'])}" for one in row["inner"]
        )
        rows.append(
            f"<tr><td><code>{html.escape(place(row))}</code>{inner}</td><td class=n>{seconds(row['seconds'])}</td>"
            f"<td>{row['bound']}</td><td>{html.escape(operators)}</td><td style='width:35%'>{bars}</td></tr>"
        )
    head = "<tr><th>line<th class=n>time<th>bound<th>operators<th>forward and optimizer (blue), backward (orange)</tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _scale(value: float, low: float, high: float, length: float) -> float:
    return (math.log10(value) - low) / (high - low) * length


def roofline(profile: Profile) -> str:
    """The roofline of a profile that has times, as SVG; a page may hold it by itself."""
    time = profile["time"]
    rows = [row for row in profile["operators"] if row["flops"] and row["bytes"] and row["seconds"]]
    if not rows:
        return "<p>No instruction has operations of the matrix units.</p>"
    low_x, high_x, high_y = 0.0, 5.0, math.log10(time["peak_flops"]) + 0.2
    low_y = high_y - 4
    marks = "".join(_mark(row, low_x, high_x, low_y, high_y) for row in rows[:1500])
    ridge = time["peak_flops"] / time["bandwidth"]
    corner = [(1.0, time["bandwidth"]), (ridge, time["peak_flops"]), (10**high_x, time["peak_flops"])]
    line = " ".join(
        f"{_EDGE + _scale(x, low_x, high_x, _WIDE - _EDGE):.1f},"
        f"{_HIGH - _EDGE - _scale(max(y, 10**low_y), low_y, high_y, _HIGH - _EDGE):.1f}"
        for x, y in corner
    )
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="roofline">'
        f'<polyline points="{line}" fill="none" stroke="#888" stroke-width="2"/>{marks}'
        f'<text x="{_WIDE / 2}" y="{_HIGH - 12}" font-size="13" text-anchor="middle">operations a byte of HBM'
        f" (1 to 10^5, logarithmic); ridge at {ridge:.0f}</text>"
        f'<text x="12" y="{_HIGH / 2}" font-size="13" transform="rotate(-90 12 {_HIGH / 2})" text-anchor="middle">'
        f"operations a second</text></svg>"
    )


def _mark(row: dict[str, Any], low_x: float, high_x: float, low_y: float, high_y: float) -> str:
    intensity, rate = row["flops"] / row["bytes"], row["flops"] / row["seconds"]
    x = _EDGE + _scale(min(max(intensity, 1.0), 10**high_x), low_x, high_x, _WIDE - _EDGE)
    y = _HIGH - _EDGE - _scale(max(rate, 10**low_y), low_y, high_y, _HIGH - _EDGE)
    colour = _COLOURS.get(row["bound"], "#999999")
    label = html.escape(f"{row['op']} {place(row)} {seconds(row['seconds'])}")
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity=".6"><title>{label}</title></circle>'


def memory_plot(profile: Profile) -> str:
    """Memory over the schedule, as SVG."""
    memory = profile["memory"]
    line = memory["timeline"]
    if not line:
        return "<p>There is no schedule to follow.</p>"
    top = max(*line, memory["limit"])
    across, up = (_WIDE - _EDGE) / max(1, len(line) - 1), (_HIGH - _EDGE - 10) / top
    points = " ".join(f"{_EDGE + at * across:.1f},{_HIGH - _EDGE - held * up:.1f}" for at, held in enumerate(line))
    limit = _HIGH - _EDGE - memory["limit"] * up
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="memory over the schedule">'
        f'<line x1="{_EDGE}" x2="{_WIDE}" y1="{limit:.1f}" y2="{limit:.1f}" stroke="#b33" stroke-dasharray="6 4"/>'
        f'<polyline points="{points}" fill="none" stroke="#3b6fb6" stroke-width="2"/>'
        f'<text x="{_EDGE}" y="{_HIGH - 12}" font-size="13">buffers followed by us, at most {size(max(line))};'
        f" dashed: {size(memory['limit'])} of the chip</text></svg>"
    )


def _instructions(profile: Profile) -> str:
    return f"<table>{''.join(_instruction_rows(profile))}</table>"


def _instruction_rows(profile: Profile) -> Iterator[str]:
    yield "<tr><th>instruction<th>operator<th>line<th class=n>time<th class=n>operations<th class=n>bytes"
    yield "<th>bound<th>time from</tr>"
    for row in profile["operators"][:200]:
        yield (
            f"<tr><td><code>{html.escape(row['name'])}</code></td><td>{html.escape(row['op'] or '')}</td>"
            f"<td><code>{html.escape(place(row))}</code></td><td class=n>{seconds(row['seconds'])}</td>"
            f"<td class=n>{row['flops']:.3g}</td><td class=n>{size(row['bytes'])}</td><td>{row['bound']}</td>"
            f"<td>{row['source']}</td></tr>"
        )
