"""Gives modules and parameters the qualified names they have without wrappers such as DDP or torch.compile."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

WRAPPERS = {"DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel"}
_INNER = {"module", "_orig_mod", "_fsdp_wrapped_module"}


def is_wrapper(module: nn.Module) -> bool:
    """Whether a module only passes on to the one inside."""
    return type(module).__name__ in WRAPPERS


class Names:
    """The modules of a program by name; a root is named by its class, `GPT`, the second of a kind `GPT#2`."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._parents: weakref.WeakKeyDictionary[nn.Module, weakref.ref[nn.Module]] = weakref.WeakKeyDictionary()
        self._roots: list[weakref.ref[nn.Module]] = []
        self._used: dict[str, int] = {}

    def registered(self, parent: nn.Module, child: nn.Module | None) -> None:
        """Remembers who contains whom, as torch reports it when a module is made part of another."""
        if child is not None and not is_wrapper(parent) and child not in self._parents:
            self._parents[child] = weakref.ref(parent)

    def of(self, module: nn.Module) -> str:
        """The name of a module that is called."""
        name = self._names.get(module)
        if name is None:
            self._adopt(self._top(module))
            name = self._names.get(module)
        if name is None:
            self._adopt(module)
            name = self._names[module]
        return name

    def _top(self, module: nn.Module) -> nn.Module:
        for _ in range(100):
            reference = self._parents.get(module)
            parent = reference() if reference else None
            # A list or dictionary of modules held by nobody known says nothing; its members are roots.
            if parent is None:
                return module
            module = parent
        return module

    def _adopt(self, root: nn.Module) -> None:
        while is_wrapper(root):
            root = next(root.children())
        base = self._names.get(root)
        if base is None:
            base = self._base(type(root).__name__)
            self._roots.append(weakref.ref(root))
        for path, module in root.named_modules():
            if module not in self._names:
                parts = [part for part in path.split(".") if part and part not in _INNER]
                self._names[module] = ".".join([base, *parts])

    def _base(self, kind: str) -> str:
        self._used[kind] = self._used.get(kind, 0) + 1
        return kind if self._used[kind] == 1 else f"{kind}#{self._used[kind]}"

    def roots(self) -> Iterator[tuple[str, nn.Module]]:
        """The outermost modules that are still there, in the order in which they were first called."""
        for reference in self._roots:
            root = reference()
            if root is not None and (root not in self._parents or self._parents[root]() is None):
                yield self._names[root], root

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter under every name it has, so that a tied one comes several times."""
        return dict(self._members("named_parameters"))

    def buffers(self) -> dict[str, torch.Tensor]:
        """Every buffer, such as the running statistics of a BatchNorm."""
        return dict(self._members("named_buffers"))

    def _members(self, kind: str) -> Iterator[tuple[str, Any]]:
        for base, root in self.roots():
            for path, member in getattr(root, kind)(remove_duplicate=False):
                parts = [part for part in path.split(".") if part not in _INNER]
                yield ".".join([base, *parts]), member
