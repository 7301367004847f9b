"""Attention libraries with CUDA kernels: their functions by PyTorch's own, as a module where none is installed."""

from __future__ import annotations

from typing import Any


def install(torch: Any) -> None:
    """Offers the stand-ins."""
