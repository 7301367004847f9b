"""Registers Python kernels over torch's own, keeping the originals callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.simulator.kernels import plain


class Kernels:
    """The kernels of one part; they vanish with it."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.library = torch.library.Library("aten", "IMPL")

    def has(self, name: str, key: str) -> bool:
        """Tells whether an operator, such as ``mm.out``, exists and has a kernel for a dispatch key."""
        try:
            return bool(self.torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key))
        except RuntimeError:  # this torch has no such operator
            return False

    def reaches(self, name: str, key: str) -> bool:
        """Tells whether an operator exists and comes to some kernel for a dispatch key, be it one for many."""
        try:
            return bool(self.torch._C._dispatch_has_computed_kernel_for_dispatch_key(f"aten::{name}", key))
        except RuntimeError:  # this torch has no such operator
            return False

    def original(self, name: str, key: str) -> Callable[..., Any]:
        """Returns torch's kernel as a plain function; fetch it before putting another over it."""
        return plain(f"aten::{name}", key)

    def put(self, name: str, kernel: Callable[..., Any], key: str) -> None:
        """Makes a function the kernel of an operator for a dispatch key."""
        self.library.impl(name, kernel, key, allow_override=True)

    def operator(self, name: str) -> Callable[..., Any]:
        """Returns the operator itself, to be dispatched anew."""
        packet, _, overload = name.partition(".")
        found: Callable[..., Any] = getattr(getattr(self.torch.ops.aten, packet), overload or "default")
        return found
