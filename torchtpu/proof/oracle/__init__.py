"""Runs a program written for CUDA on the CPU: in its process ``cuda`` is another name for the CPU.

What the program sees:

* Device objects and names stay what they are: ``torch.device("cuda").type`` is ``"cuda"``. Where one is
  used (``device=``, ``.to``, ``.cuda``, ``map_location``), memory of the CPU is taken.
* A tensor says where the program put it. Made without a device, from NumPy, by a loader or by ``.cpu()``
  it says ``cpu``; made on or moved to ``cuda`` it says ``cuda:0``. What is computed says ``cuda`` as soon as
  the program has put anything there, because that is where a CUDA program computes.
* A move between the two copies, as it does on a machine with a GPU, so that a snapshot taken with
  ``.cpu()`` does not change with the parameter.
* ``torch.cuda`` answers as one device of compute capability 8.0, one per local rank under a launcher.

What it cannot do is reported by an event of kind ``oracle``.
"""

from __future__ import annotations

import importlib
from typing import Any

# In this order: factories wrap what placement defines, everything else wraps factories.
_PARTS = (
    "placement",
    "devices",
    "factories",
    "tensors",
    "modules",
    "queries",
    "streams",
    "seeds",
    "amp",
    "legacy",
    "loading",
    "distributed",
    "graphs",
    "net",
    "standins",
)


def install(torch: Any) -> None:
    """Makes ``cuda`` an alias of the CPU in this process, before the program's first line."""
    for part in _PARTS:
        importlib.import_module(f"{__name__}.{part}").install(torch)
