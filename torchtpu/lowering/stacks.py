"""Tells for each operator where in the program it comes from, in forward and in backward."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

import torch

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
# Between an operator and who asked for it there are only wrappers of these.
_PLUMBING = tuple(_TORCH + name for name in ("_ops.py", "_compile.py", "_dynamo" + os.sep, "utils" + os.sep))

Frame = tuple[str, int, str]


class Stacks:
    """Every different stack once, by number."""

    def __init__(self) -> None:
        self.stacks: list[list[Frame]] = []
        self._known: dict[tuple[Frame, ...], int] = {}

    def here(self) -> int:
        """Returns the number of the running thread's stack, innermost frame first, our own frames left out."""
        frames: list[Frame] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith((_OURS, "<frozen")) and (frames or not file.startswith(_PLUMBING)):
                frames.append((file, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back
        key = tuple(frames)
        if key not in self._known:
            self._known[key] = len(self.stacks)
            self.stacks.append(frames)
        return self._known[key]


def sequence() -> int:
    """Returns the number of the autograd node that was made last, which a forward operator belongs to."""
    return int(torch._C._autograd._get_sequence_nr()) - 1


def backward_node() -> tuple[str, int] | None:
    """Returns the name and number of the autograd node that runs now; None outside a backward pass."""
    node: Any = torch._C._current_autograd_node()
    if node is None:
        return None
    return str(node.name()), int(node._sequence_nr())


def is_optimizer(frames: list[Frame]) -> bool:
    """Says whether a stack lies inside a step of an optimizer."""
    return any(
        function in ("step", "profile_hook_step", "wrapper") and file.startswith(_TORCH + "optim" + os.sep)
        for file, _, function in frames
    )
