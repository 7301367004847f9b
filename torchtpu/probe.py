"""Adds two tensors on the device and says so in one JSON line; the doctor runs it in a child."""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> int:
    """Brings the device of the environment up, adds two tensors and reports."""
    # This file is run by path in any interpreter: make its own package importable, nothing else.
    sys.path[0] = os.environ["TORCHTPU_PROBE_ROOT"]
    from torchtpu import device

    start = time.perf_counter()
    info = device.bring_up()
    import torch

    name = "cpu" if info.kind == "cpu" else "tpu"
    total = (torch.full((2,), 1.5, device=name) + torch.full((2,), 2.5, device=name)).cpu()
    report = {
        "sum": total.tolist(),
        "device": str(torch.ones(1, device=name).device),
        "seconds": round(time.perf_counter() - start, 2),
    }
    sys.stdout.write("\n" + json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
