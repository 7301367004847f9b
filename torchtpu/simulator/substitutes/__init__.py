"""Operators a CPU plugin cannot run as torch_tpu lowers them, one file a family.

Each module has `install(registry, numerics)`, which registers kernels for the device over
torch_tpu's own. They run in Python when the operator is dispatched, in eager mode and while
torch.compile builds its program, and never inside XLA's compiler.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from torchtpu.simulator.kernels import Registry

if TYPE_CHECKING:
    from torchtpu.device_info import Numerics


def install(numerics: Numerics) -> Registry:
    """Registers every substitute and returns the registry, which must stay alive."""
    registry = Registry()
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        importlib.import_module(f"{__name__}.{module.name}").install(registry, numerics)
    return registry
