"""Makes this process a run of a comparison, as its environment says, right after torch has been imported."""

from __future__ import annotations

import os
from typing import Any

from torchtpu.proof.spec import Proof

_done: set[str] = set()


def _first(what: str) -> bool:
    # A process may become a program after it has imported torch, and is then begun again.
    if what in _done:
        return False
    _done.add(what)
    return True


def alias(torch: Any) -> None:
    """Makes ``cuda`` an alias of the CPU where this run is the oracle's; for every process of the workload."""
    proof = Proof.read(os.environ)
    if proof is not None and proof.oracle and _first("alias"):
        from torchtpu.proof import oracle

        oracle.install(torch)


def record(_torch: Any) -> None:
    """Installs the recorder, whose hooks must come before those that end the program after its last step."""
    proof = Proof.read(os.environ)
    if proof is not None and proof.record is not None and _first("record"):
        from torchtpu.proof import recorder

        recorder.install(proof)


def begin(torch: Any) -> None:
    """Installs the rest in a process that computes; the device, where there is one, is up."""
    proof = Proof.read(os.environ)
    if proof is None or not _first("begin"):
        return
    if proof.seed is not None:
        from torchtpu.proof import seeding

        seeding.seed(torch, proof.seed)
    if proof.draws:
        from torchtpu.proof import draws

        draws.install(torch)
    if proof.precision != "own":
        from torchtpu.proof import precision

        precision.install(torch, proof.precision)
    if proof.numerics_on_cpu:
        from torchtpu.proof import numerics

        numerics.install(torch)
    if proof.other_kernels:
        from torchtpu.proof import sums

        torch.backends.mkldnn.set_flags(False)
        sums.install(torch)
    if proof.jitter is not None:
        from torchtpu.proof import jitter

        jitter.install(torch, proof.jitter)
