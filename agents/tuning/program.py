"""The program that is tuned: copies of it, its recorded step, and its estimates."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.context import Context
from agents.nodes.profile import request_for
from agents.runs import remove_tree
from agents.tuning.state import TuneState
from tools import estimate as estimating
from tools import profile as profiler
from tools.estimate import Estimate, Mode
from tools.profile import ProfileRequest


@contextmanager
def copied(state: TuneState, context: Context, command: str) -> Iterator[ProfileRequest]:
    """A request to profile the tree as it stands, in a copy that is there meanwhile."""
    copy = context.folder.path / "profile" / "copy"
    copy.parent.mkdir(exist_ok=True)
    try:
        request = request_for(command, copy, state, context)
        yield request.model_copy(update={"quick": state.options.quick})
    finally:
        remove_tree(copy)


def estimated(request: ProfileRequest, context: Context, mode: Mode = "launched") -> Estimate:
    """The estimate of a step, told while it is made."""
    return estimating.estimate(request, mode, lambda said: context.progress.working("estimate", said))


def recording(request: ProfileRequest) -> str:
    """Where the step of a request is recorded; to be asked before the program runs, which may write beside itself."""
    return str(profiler.place_of(request))


def recorded(state: TuneState) -> dict[str, Any]:
    """The step of the tree as it stands, which its estimate has recorded."""
    path = Path(state.recording) / profiler.STEP
    return dict(json.loads(gzip.decompress(path.read_bytes())))
