"""The message of a commit that tuning makes: what it does, what the estimate was and is, what was compared."""

from __future__ import annotations

import textwrap

from agents.tuning.state import Trial, TuneState
from agents.tuning.text import described
from tools.transforms.base import Proposal

_CHANGES = {
    "nothing": "What is computed stays the same.",
    "rounding": "Numbers are rounded more coarsely, on purpose.",
    "batch": "A step takes another number of samples, on purpose: the learning rate may need to follow.",
}


def message(kept: Trial, proposal: Proposal, state: TuneState) -> str:
    """Subject, figures, what was compared, and how to repeat it."""
    assert kept.before is not None and kept.after is not None
    lines = [f"{kept.transform}: {proposal.title}", ""]
    lines += _wrapped(f"{_CHANGES[kept.changes]} {proposal.note}".strip())
    lines += ["", f"On {kept.after.target}, estimated with Google's compiler, not measured:"]
    lines += [f"  before: {described(kept.before)}", f"  after:  {described(kept.after)}"]
    lines += ["", "Compared with the plain migration:"]
    lines += [f"- {said}" for said in kept.verified]
    lines += ["", f"Entry: {state.entries[0].command}", "Made by torchtpu-agent tune."]
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 76)
