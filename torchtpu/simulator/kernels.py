"""Registers Python kernels for the device over torch_tpu's own, keeping the originals callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Kernel = Callable[..., Any]
_KEY = "PrivateUse1"
# torch leaves this class without types.
_library: Any = torch.library.Library


def plain(name: str, key: str) -> Kernel:
    """Returns the kernel that an operator has now for a dispatch key, as a plain function.

    Args:
        name: Such as ``aten::mm.out``. Fetch it before putting another over it.
        key: Such as ``CPU``.
    """
    kernel = torch.library.get_kernel(name, key)
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def call(*args: Any, **kwargs: Any) -> Any:
        return kernel.call_boxed(keys, *args, **kwargs)

    return call


class Registry:
    """Kernels this process put over torch_tpu's own.

    Attributes:
        names: Operators replaced, such as ``aten::mm.out``.
    """

    def __init__(self) -> None:
        self._libraries: dict[str, Any] = {}
        self.names: list[str] = []

    def exists(self, name: str) -> bool:
        """Tells whether the device has a kernel of its own for an operator."""
        return torch._C._dispatch_has_kernel_for_dispatch_key(name, _KEY)

    def original(self, name: str) -> Kernel:
        """Returns torch_tpu's kernel for an operator as a plain function.

        Args:
            name: Such as ``aten::mm.out``. Fetch it before replacing it.
        """
        return plain(name, _KEY)

    def replace(self, name: str, kernel: Kernel, key: str = _KEY) -> None:
        """Makes ``kernel`` the device's implementation of an operator.

        Args:
            name: Such as ``aten::mm.out``.
            kernel: Called in the operator's place.
            key: Dispatch key; ``AutogradPrivateUse1`` reaches an operator made of others, whose
                kernel must be differentiable by what it calls.
        """
        namespace, _, operator = name.partition("::")
        library = self._libraries.get(namespace)
        if library is None:
            library = self._libraries[namespace] = _library(namespace, "IMPL")
        library.impl(operator, kernel, key, allow_override=True)
        self.names.append(name)
