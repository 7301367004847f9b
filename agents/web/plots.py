"""Plots as SVG inside the page: the loss of a run, and error ratios layer by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

_WIDE, _HIGH = 720, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 14, 34
_NO_ERROR = 1e-3
"""Where a ratio of nothing is drawn, on an axis that has no 0."""


def losses(values: Sequence[float], label: str) -> Markup:
    """A curve over optimizer steps; values that are no numbers are left out of the line and said."""
    known = [(at, value) for at, value in enumerate(values) if math.isfinite(value)]
    if len(known) < 2:
        return Markup("")
    low, high = min(value for _, value in known), max(value for _, value in known)
    if low == high:
        low, high = low - abs(low) / 10 - 1e-9, high + abs(high) / 10 + 1e-9
    points = [(_across(at, len(values)), _up((value - low) / (high - low))) for at, value in known]
    lost = len(values) - len(known)
    title = f"{label}: {known[0][1]:.4g} to {known[-1][1]:.4g} in {len(values)} steps"
    title += f"; {lost} are no numbers" if lost else ""
    return _svg(
        title,
        _levels([(low, f"{low:.3g}"), ((low + high) / 2, f"{(low + high) / 2:.3g}"), (high, f"{high:.3g}")], low, high),
        Markup('<polyline class="line" points="{}"/>').format(" ".join(f"{x:.1f},{y:.1f}" for x, y in points)),
        Markup("").join(_dot(x, y, f"step {known[n][0] + 1}: {known[n][1]:.6g}") for n, (x, y) in enumerate(points)),
        _caption(f"optimizer step, 1 to {len(values)}"),
    )


def ratios(by_name: Mapping[str, float | str], limit: float, label: str) -> Markup:
    """Error ratios of modules or parameters in the order in which they were computed, with the limit."""
    values = [(name, math.inf if isinstance(ratio, str) else ratio) for name, ratio in by_name.items()]
    if not values:
        return Markup("")
    finite = [ratio for _, ratio in values if math.isfinite(ratio)]
    low, high = math.log10(_NO_ERROR), math.log10(max([*finite, limit]) * 2)
    marks = []
    for at, (name, ratio) in enumerate(values):
        height = (math.log10(min(max(ratio, _NO_ERROR), 10**high)) - low) / (high - low)
        said = f"{name}: {ratio:.3g}" if ratio else f"{name}: the same bit for bit"
        draw = _square if ratio > limit else _dot
        marks.append(draw(_across(at, len(values)), _up(height), said))
    levels = [(level, f"{10**level:g}") for level in range(int(low), int(high) + 1)]
    worst = max(ratio for _, ratio in values)
    title = f"{label}: error ratios of {len(values)}, the largest {worst:.3g}, the limit {limit:g}"
    return _svg(
        title, _levels(levels, low, high), _limit(limit, low, high), Markup("").join(marks),
        _caption("in the order in which they were computed; point at a mark for its name"),
    )  # fmt: skip


def _across(at: float, count: int) -> float:
    return _LEFT + 8 + (_WIDE - _LEFT - _RIGHT - 16) * (at / (count - 1) if count > 1 else 0.5)


def _up(share: float) -> float:
    return _HIGH - _BOTTOM - (_HIGH - _TOP - _BOTTOM) * share


def _svg(title: str, *parts: Markup) -> Markup:
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(_WIDE, _HIGH, title)
    return head + Markup("").join(parts) + Markup("</svg>")


def _levels(levels: Sequence[tuple[float, str]], low: float, high: float) -> Markup:
    made = Markup(
        '<line class="grid" x1="{x}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}"/><text x="{left}" y="{below:.1f}"'
        ' text-anchor="end">{text}</text>'
    )
    return Markup("").join(
        made.format(x=_LEFT, end=_WIDE - _RIGHT, y=y, left=_LEFT - 8, below=y + 4, text=text)
        for level, text in levels
        for y in [_up((level - low) / (high - low))]
    )


def _limit(limit: float, low: float, high: float) -> Markup:
    y = _up((math.log10(limit) - low) / (high - low))
    return Markup(
        '<line class="limit" x1="{x}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}"/><text class="limit-text" x="{end}"'
        ' y="{above:.1f}" text-anchor="end">limit {limit:g}</text>'
    ).format(x=_LEFT, end=_WIDE - _RIGHT, y=y, above=y - 5, limit=limit)


def _dot(x: float, y: float, said: str) -> Markup:
    return Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="4"><title>{}</title></circle>').format(
        x, y, escape(said)
    )


def _square(x: float, y: float, said: str) -> Markup:
    return Markup('<rect class="mark over" x="{:.1f}" y="{:.1f}" width="9" height="9"><title>{}</title></rect>').format(
        x - 4.5, y - 4.5, escape(said)
    )


def _caption(text: str) -> Markup:
    return Markup('<text x="{:.0f}" y="{}" text-anchor="middle">{}</text>').format(
        _LEFT + (_WIDE - _LEFT - _RIGHT) / 2, _HIGH - 8, text
    )
