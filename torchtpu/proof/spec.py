"""Says how a run takes part in a comparison; carried to the workload in environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_ORACLE = "TORCHTPU_PROOF_ORACLE"
_PRECISION = "TORCHTPU_PROOF_PRECISION"
_NUMERICS = "TORCHTPU_PROOF_NUMERICS_ON_CPU"
_JITTER = "TORCHTPU_PROOF_JITTER"
_KERNELS = "TORCHTPU_PROOF_OTHER_KERNELS"
_DRAWS = "TORCHTPU_PROOF_DRAWS"
_SEED = "TORCHTPU_PROOF_SEED"
_RECORD = "TORCHTPU_PROOF_RECORD"
_STEPS = "TORCHTPU_PROOF_RECORD_STEPS"
_BACKWARDS = "TORCHTPU_PROOF_MOST_BACKWARDS"

Precision = Literal["own", "float32", "bfloat16"]


def _precision(name: str) -> Precision:
    return "float32" if name == "float32" else "bfloat16" if name == "bfloat16" else "own"


@dataclass(frozen=True)
class Proof:
    """How one run of a comparison is made.

    Attributes:
        oracle: ``cuda`` is an alias of the CPU in the process.
        precision: ``float32`` turns autocast and half precision off; ``own`` leaves the program's; ``bfloat16``
            also, but takes bfloat16 where the program asks for float16, as a migrated program does on a TPU.
        numerics_on_cpu: Matrix inputs on the CPU are rounded to bfloat16, as a TPU does.
        jitter: Seed of a perturbation of the weights by one unit in the last place; None leaves them.
        other_kernels: The CPU computes without oneDNN, and its sums are moved as another order of adding up would.
        draws: Random numbers are drawn on the CPU, in the same order on every device, and then copied.
        seed: Seed of torch, numpy and random where the program sets none itself.
        record: Folder the recorder writes to; None records nothing.
        record_steps: Optimizer steps that are recorded module by module.
        most_backwards: Backward passes after which a recorded program is ended: one that lost its ``optimizer.step``
            would never reach its last step.
    """

    oracle: bool = False
    precision: Precision = "own"
    numerics_on_cpu: bool = False
    jitter: int | None = None
    other_kernels: bool = False
    draws: bool = False
    seed: int | None = None
    record: Path | None = None
    record_steps: int = 2
    most_backwards: int | None = None

    def variables(self) -> dict[str, str]:
        """The environment variables that carry it into a workload."""
        values = {
            _ORACLE: "1" if self.oracle else "",
            _PRECISION: self.precision,
            _NUMERICS: "1" if self.numerics_on_cpu else "",
            _JITTER: "" if self.jitter is None else str(self.jitter),
            _KERNELS: "1" if self.other_kernels else "",
            _DRAWS: "1" if self.draws else "",
            _SEED: "" if self.seed is None else str(self.seed),
            _RECORD: "" if self.record is None else str(self.record),
            _STEPS: str(self.record_steps),
            _BACKWARDS: "" if self.most_backwards is None else str(self.most_backwards),
        }
        chosen = {name: value for name, value in values.items() if value}
        if self.oracle:
            # Compiled scripts look torch's functions up by identity, and ours stand in their place.
            chosen["PYTORCH_JIT"] = "0"
        # Both sides run operator by operator, and walk sets in the same order.
        return {**chosen, "TORCHDYNAMO_DISABLE": "1", "PYTHONHASHSEED": "0"}

    @staticmethod
    def read(variables: Mapping[str, str]) -> Proof | None:
        """The proof that a workload's environment carries; None in a run that is not compared."""
        if _PRECISION not in variables:
            return None
        record = variables.get(_RECORD)
        return Proof(
            oracle=_ORACLE in variables,
            precision=_precision(variables[_PRECISION]),
            numerics_on_cpu=_NUMERICS in variables,
            jitter=int(variables[_JITTER]) if _JITTER in variables else None,
            other_kernels=_KERNELS in variables,
            draws=_DRAWS in variables,
            seed=int(variables[_SEED]) if _SEED in variables else None,
            record=Path(record) if record else None,
            record_steps=int(variables.get(_STEPS, "2")),
            most_backwards=int(variables[_BACKWARDS]) if _BACKWARDS in variables else None,
        )
