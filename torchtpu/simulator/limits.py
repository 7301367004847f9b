"""The error for what a real TPU does and the simulated one cannot."""

from __future__ import annotations


class SimulatorLimit(RuntimeError):
    """The simulated device cannot do this; it says nothing about a TPU."""

    def __init__(self, what: str, remedy: str = "run this part on TPU hardware") -> None:
        super().__init__(
            f"the simulated TPU cannot run {what} (a limit of the simulator, not of your program "
            f"or of TorchTPU): {remedy}"
        )
