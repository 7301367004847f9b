"""Libraries of CUDA kernels that are not installed, by PyTorch's own operators.

``flash_attn``, ``xformers.ops`` and parts of ``apex`` are found only where Python finds no such package. An
import of one is told by an event of kind ``stand-in``; what it does not offer is reported when it is asked for.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torchtpu.inject import writer
from torchtpu.proof import wrapping
from torchtpu.proof.oracle import fused, memory_efficient

VERSION = "2.8.0+torchtpu.standin"
Contents = Callable[[Any], dict[str, Any]]

_MODULES: dict[str, Contents] = {
    "flash_attn": fused.attention,
    "flash_attn.flash_attn_interface": fused.attention,
    "xformers": lambda _torch: {},
    "xformers.ops": memory_efficient.operators,
    "apex": lambda _torch: {},
    "apex.normalization": fused.normalization,
    "apex.optimizers": fused.optimizers,
}


class _Loader:
    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    def create_module(self, _spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        writer.write("note", kind="stand-in", message=f"{module.__name__} is not installed: PyTorch's operators")
        module.__dict__.update(self.contents(sys.modules["torch"]), __version__=VERSION)

        def missing(name: str) -> Any:
            if not name.startswith("__"):
                wrapping.unimitated(f"{module.__name__}.{name}", "it is not among the stand-ins")
            raise AttributeError(name)

        module.__getattr__ = missing  # type: ignore[method-assign]


class _Finder:
    """Comes last, so that an installed package is never hidden."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: Any = None) -> Any:
        contents = _MODULES.get(name)
        if contents is None or not _absent(name.partition(".")[0]):
            return None
        package = any(other.startswith(f"{name}.") for other in _MODULES)
        return importlib.machinery.ModuleSpec(name, _Loader(contents), is_package=package)  # type: ignore[arg-type]


def _absent(package: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(package) is None


def install(_torch: Any) -> None:
    """Offers the stand-ins to imports."""
    sys.meta_path.append(_Finder())
