"""What to launch and what came of it: the typed input and result of a supervised run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from torchtpu.launcher.explain import explain
from torchtpu.launcher.outcome import Facts
from torchtpu.proof.spec import Proof


@dataclass(frozen=True)
class LaunchSpec:
    """A workload and the conditions it runs under.

    Attributes:
        argv: The command line; ``python`` or ``python3`` at its head means ``python`` below.
        cwd: The project's folder, where it runs; it may write there.
        env: Variables added to the environment; they are passed on even where they look like credentials.
        device: ``auto`` takes hardware when there is some, else the simulated device.
        python: The workload's interpreter; None is the running one. Its folder comes first on PATH.
        max_steps: The program is ended cleanly after that many optimizer steps.
        time_limit: Seconds of wall time.
        idle_limit: Seconds without output, event or processor use after which it counts as hanging.
        memory_limit: Bytes of memory of all its processes together; looked at several times a second.
        disk_limit: Bytes by which the folders it may write to may grow; also the size limit of any one file.
        output_limit: Bytes of output kept in the log; 64 times as much ends the run.
        sandbox: ``on`` refuses to run without one, ``auto`` says so in the result.
        writable: Folders it may write to besides ``cwd`` and its private temporary folder.
        numerics: ``tpu`` rounds matrix inputs to bfloat16 on a simulated device.
        verbose: The native log is shown too.
        log: File for the combined output.
        grace: Seconds a program has to end itself when it is told to.
        plugin: CPU PJRT plugin for a simulated device, whatever its hash.
        proof: The run's part in a comparison; one of the oracle takes the CPU whatever ``device`` says.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    device: Literal["auto", "hardware", "simulated", "cpu"] = "auto"
    python: Path | None = None
    max_steps: int | None = None
    time_limit: float | None = None
    idle_limit: float | None = None
    memory_limit: int | None = None
    disk_limit: int | None = None
    output_limit: int | None = None
    sandbox: Literal["auto", "on", "off"] = "auto"
    writable: Sequence[Path] = ()
    numerics: Literal["float32", "tpu"] = "float32"
    verbose: bool = False
    log: Path | None = None
    grace: float = 20.0
    plugin: Path | None = None
    proof: Proof | None = None


@dataclass(frozen=True)
class RunResult(Facts):
    """What came of a run; see ``Facts`` for what it holds."""

    def explain(self) -> str:
        """Says in a few sentences what ended the run, where, and what to do next."""
        return explain(self)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values, with the explanation; a loss that is not finite is a string."""
        data = asdict(self)
        data["losses"] = [loss if math.isfinite(loss) else str(loss) for loss in self.losses]
        data["outcome"] = str(self.outcome)
        data["log"] = str(self.log) if self.log else None
        data["explanation"] = self.explain()
        return data
