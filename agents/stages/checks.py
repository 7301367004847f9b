"""The stages that can be judged, by name."""

from __future__ import annotations

from collections.abc import Callable

from agents.context import Context
from agents.stages.clean import clean
from agents.stages.forward import forward
from agents.stages.gradients import gradients
from agents.stages.parses import parses
from agents.stages.preserves import preserves
from agents.stages.runs import runs
from agents.stages.trains import trains
from agents.state import State, Verdict

CHECKS: dict[str, Callable[[State, Context], Verdict]] = {
    "parses": parses,
    "clean": clean,
    "runs": runs,
    "forward": forward,
    "gradients": gradients,
    "trains": trains,
    "preserves": preserves,
}
"""What judges each stage, by the stage's name."""
