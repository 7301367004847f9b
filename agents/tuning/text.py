"""Estimates and trials in words."""

from __future__ import annotations

from agents.tuning.state import Trial, TuneState, speedup
from tools.estimate import Estimate
from tools.profiles.text import seconds, size
from tools.wording import amount


def described(one: Estimate) -> str:
    """An estimate in a line."""
    if one.outcome == "out-of-memory":
        return f"does not fit {one.target}: {' '.join(one.message.split())[:200]}"
    if one.seconds is None:
        return f"{one.outcome}: {' '.join(one.message.split())[:200]}"
    sample = f", {seconds(one.per_sample)} a sample" if one.per_sample else ""
    said = f"{seconds(one.seconds)} a step ({seconds(one.low or 0)} to {seconds(one.high or 0)}){sample}"
    said += f", estimated; {amount(one.launches, 'program')} launched"
    if one.left_out:
        said += f", of which {one.left_out} are not in the time"
    if one.peak is not None:
        said += f"; {size(one.peak)} of {size(one.limit or 0)} as one program"
    return said


def line(trial: Trial) -> str:
    """A trial in a line."""
    gain = trial.gain
    figures = ""
    if trial.before is not None and trial.after is not None:
        figures = f"  {short(trial.before)} -> {short(trial.after)}" + (f" ({gain:.2f}x)" if gain else "")
    return f"{trial.verdict:<8} {trial.transform:<18}{figures}" + (f"  {trial.reason}" if trial.reason else "")


def short(one: Estimate) -> str:
    """Time of a step, or why there is none."""
    return seconds(one.seconds) if one.seconds is not None else one.outcome


def total(state: TuneState) -> str:
    """What all that was kept comes to."""
    gain = speedup(state.plain, state.best)
    if gain is None or state.plain is None or state.best is None:
        return "no estimate of both"
    by = "a sample" if state.plain.per_sample and state.best.per_sample else "a step"
    return f"{short(state.plain)} -> {short(state.best)} a step; {gain:.2f} times less time {by}, estimated"
