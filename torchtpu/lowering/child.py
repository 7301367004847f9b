"""The child of a lowering: ``python -m torchtpu.lowering.child STEP FOLDER`` writes the program of a recorded step."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from torchtpu.lowering import capture

PROGRAM_FILE = "program.mlir"
ABOUT_FILE = "lowered.json"


def main(step_path: str, folder: str) -> None:
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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    # torch_tpu prints and waits at its shutdown; everything is on the disk.
    os._exit(0)
