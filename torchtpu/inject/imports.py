"""Calls a function right after a named module has been imported for the first time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torchtpu.inject import writer

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

Callback = Callable[[ModuleType], None]


def _call(callback: Callback, module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:  # noqa: BLE001  a fault of ours must not become the import's; the parent is told
        writer.write("note", kind="injection", message=f"after import of {module.__name__}: {error!r}")


class _AfterImport:
    # No subclass of importlib.abc's finder: every Python process pays for what is imported here.
    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callback]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.callbacks:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._watch(spec)
                return spec
        return None

    def _watch(self, spec: ModuleSpec) -> None:
        # An instance attribute over the loader's method: the module keeps its own loader and spec.
        loader: Any = spec.loader
        if loader is None or isinstance(loader, type):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            for callback in self.callbacks.pop(spec.name, []):
                _call(callback, module)

        loader.exec_module = exec_module


_finder = _AfterImport()


def after_import(name: str, callback: Callback, *, begun: bool = False) -> None:
    """Calls ``callback(module)`` once, when ``name`` has been imported or now if it already is.

    Args:
        name: A module.
        callback: What to call.
        begun: Its import, watched by `watch`, has begun and is not at its end.
    """
    module = sys.modules.get(name)
    if module is not None and not begun:
        _call(callback, module)
        return
    watch(name)
    _finder.callbacks[name].append(callback)


def watch(name: str) -> None:
    """Looks out for the import of a module, so that callbacks can come while it goes on."""
    _finder.callbacks.setdefault(name, [])
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
