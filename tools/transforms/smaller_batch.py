"""Takes half the samples in a step, until it fits."""

from __future__ import annotations

from tools.profiles.fit import batch_in
from tools.transforms.base import Advice, Proposal, Subject, Transform


class SmallerBatch(Transform):
    """Where a step does not fit, the batch of the command is halved, after everything that keeps the batch."""

    ID = "smaller-batch"
    TITLE = "a smaller batch"
    ORDER = 80
    CHANGES = "batch"

    def propose(self, subject: Subject) -> Proposal | Advice | None:
        """See `Transform`."""
        if subject.fits is not False:
            return None
        found = batch_in(subject.command)
        if found is None or found[0] < 2:
            return Advice("the entry has no option with `batch` in its name and a number above 1")
        return Proposal(f"take {found[0] // 2} samples in a step", command=_halved, again=True)


def _halved(command: str) -> str:
    found = batch_in(command)
    return found[1](max(1, found[0] // 2)) if found else command
