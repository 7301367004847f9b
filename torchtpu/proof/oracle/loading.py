"""Loading: checkpoints come to the CPU whatever device they name, and loaders pin nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchtpu.proof import wrapping
from torchtpu.proof.oracle import placement
from torchtpu.proof.oracle.placement import HOST

_fetched = 0


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        # What was saved on a GPU names it, and there is none here.
        where = map_location if callable(map_location) or _elsewhere(map_location) else placement._cpu
        before = _fetched
        loaded = original(f, where, *args, **kwargs)
        return placement.put_all(loaded, _place(map_location, _fetched > before))

    return load


def _elsewhere(map_location: Any) -> bool:
    return not isinstance(map_location, dict) and map_location is not None and placement.read(map_location) is None


def _place(map_location: Any, fetched: bool) -> int:
    """The place of what was loaded: the one named; else CUDA where the program computes there, as it saves there."""
    if isinstance(map_location, dict):
        map_location = next(iter(map_location.values()), None)
    if callable(map_location):
        return placement.state.current if fetched else HOST
    place = placement.read(map_location)
    if place is not None:
        return place
    return placement.state.current if placement.state.used and map_location is None else HOST


def _fetch(storage: Any, *_args: Any, **_kwargs: Any) -> Any:
    global _fetched
    _fetched += 1
    return storage


def _hook_storages(torch: Any) -> None:
    for kind in (torch.UntypedStorage, torch.TypedStorage):
        kind.cuda = _fetch
        kind.pin_memory = lambda self, device=None: self  # noqa: ARG005  torch's signature
    storage = torch.UntypedStorage
    create = storage.__new__

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["device"] = placement.real(kwargs["device"])
        return create(cls, *args, **kwargs)

    storage.__new__ = staticmethod(new)


def _loader(original: Callable[..., Any]) -> Callable[..., Any]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.pin_memory = False

    return init


def _batch(original: Callable[..., Any]) -> Callable[..., Any]:
    def following(self: Any) -> Any:
        return placement.put_all(original(self), HOST)

    return following


def install(torch: Any) -> None:
    """Changes torch.load, storages and DataLoader."""
    from torch.utils.data import dataloader

    for module in (torch, torch.serialization):
        wrapping.over(module, "load", _load)
    wrapping.over(torch.jit, "load", _load)
    _hook_storages(torch)
    wrapping.over(dataloader.DataLoader, "__init__", _loader)
    wrapping.over(dataloader._BaseDataLoaderIter, "__next__", _batch)
