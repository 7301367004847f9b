"""The child of a lowering: ``python -m torchtpu.lowering.child STEP FOLDER [MODE]``.

It writes the program of a recorded step, or with a mode of `torchtpu.lowering.partition` the programs it is cut into.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, cast

from torchtpu.lowering import capture

PROGRAM_FILE = "program.mlir"
ABOUT_FILE = "lowered.json"
PARTS_FILE = "parts.json"


def main(step_path: str, folder: str, mode: str = "") -> None:
    """Lowers and writes StableHLO and what it says about arguments; an operator that fails is an answer too."""
    # The device comes up without the simulator's substitutes: nothing is run on it.
    os.environ[capture.FOLDER_VARIABLE] = folder
    from torchtpu import device

    device.bring_up(device.choose("simulated"))
    from torchtpu.lowering import replay
    from torchtpu.simulator import runtime

    runtime.start_runtime()
    began = time.monotonic()
    out = Path(folder)
    if mode:
        (out / PARTS_FILE).write_text(json.dumps(_parts(json.loads(Path(step_path).read_text()), mode)))
        return
    try:
        lowered = replay.lower(json.loads(Path(step_path).read_text()))
    except replay.LoweringError as error:
        (out / ABOUT_FILE).write_text(json.dumps({"error": str(error)[:4000]}))
        return
    (out / PROGRAM_FILE).write_text(lowered.text)
    about = {
        "error": None,
        "inputs": lowered.inputs,
        "donated": {str(argument): result for argument, result in lowered.donated.items()},
        "results": lowered.results,
        "notes": lowered.notes,
        "seconds": time.monotonic() - began,
    }
    (out / ABOUT_FILE).write_text(json.dumps(about))


def _parts(step: dict[str, Any], mode: str) -> list[dict[str, Any]]:
    """Each different program of a step; one that TorchTPU cannot take has an error in the place of its text."""
    from torchtpu.lowering import partition, replay

    found = []
    for part, times in partition.distinct(partition.partition(step, cast(partition.Mode, mode))):
        entry: dict[str, Any] = {"kind": part.kind, "times": times, "operators": part.operators, "step": part.step}
        try:
            lowered = replay.lower(part.step)
            entry |= {"text": lowered.text, "donated": {str(at): result for at, result in lowered.donated.items()}}
        except replay.LoweringError as error:
            entry["error"] = str(error)[:2000]
        found.append(entry)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    # torch_tpu prints and waits at its shutdown; everything is on the disk.
    os._exit(0)
