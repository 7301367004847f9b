"""Modules and parameters: a parameter is where its data is, and a module may be moved by a device's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement


def _parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    def new(cls: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        made = original(cls, data, *args, **kwargs)
        place = placement.HOST if data is None else placement.known(data)
        return made if place is None else placement.put(made, place)

    return new


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):
            args = (placement.device("cuda", args[0]), *args[1:])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = placement.device("cuda", kwargs["device"])
        return original(self, *args, **kwargs)

    return to


def install(torch: Any) -> None:
    """Changes Module and Parameter."""
    for kind in (torch.nn.Parameter, torch.nn.Buffer):
        kind.__new__ = staticmethod(_parameter(kind.__new__))
    wrapping.over(torch.nn.Module, "to", _to)
