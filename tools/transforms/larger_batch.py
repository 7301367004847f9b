"""Takes twice the samples in a step, as long as a sample takes less time and the step fits."""

from __future__ import annotations

from tools.profiles.fit import batch_in
from tools.transforms.base import Advice, Proposal, Subject, Transform


class LargerBatch(Transform):
    """A small batch leaves the matrix units waiting for weights and for the launch of programs.

    Only the command changes, and only where it has an option with ``batch`` in its name. Training with another batch is
    another training: whether the learning rate has to follow is for a person to say.
    """

    ID = "larger-batch"
    TITLE = "a larger batch"
    ORDER = 90
    CHANGES = "batch"

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if subject.fits is False:
            return None
        found = batch_in(subject.command)
        if found is None:
            return Advice("the entry has no option with `batch` in its name; name the batch there to have it tried")
        size = found[0]
        note = "The learning rate may need to follow the batch."
        return Proposal(f"take {2 * size} samples in a step", command=_doubled, note=note, again=True)


def _doubled(command: str) -> str:
    found = batch_in(command)
    return found[1](2 * found[0]) if found else command
