"""Puts a function over another one of a module or class, and reports what a stand-in cannot do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchtpu.inject import frames, writer

MAX_REPORTS = 100
_reported: set[tuple[str, str, int]] = set()


def over(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    """Replaces ``owner.name`` by what ``make`` makes of it; an owner without it stays as it is."""
    original = getattr(owner, name, None)
    if original is None:
        return
    made = make(original)
    with_name = functools.WRAPPER_ASSIGNMENTS
    setattr(owner, name, functools.update_wrapper(made, original, assigned=with_name, updated=()))


def answer(owner: Any, values: dict[str, Any]) -> None:
    """Makes functions of a module return fixed values, whatever they are called with."""
    for name, value in values.items():
        setattr(owner, name, _constant(name, value))


def _constant(name: str, value: Any) -> Callable[..., Any]:
    def function(*_args: Any, **_kwargs: Any) -> Any:
        return value

    function.__name__ = name
    return function


def unimitated(call: str, why: str) -> None:
    """Reports a call whose effect on CUDA this process cannot show, with the user's line, once a place."""
    user = frames.caller()
    place = (call, user["file"] if user else "", user["line"] if user else 0)
    if place in _reported or len(_reported) >= MAX_REPORTS:
        return
    _reported.add(place)
    writer.write(
        "note", kind="oracle", call=call, message=f"{call}: {why}", file=place[1] or None, line=place[2] or None
    )


def refuse(call: str, why: str) -> Callable[..., Any]:
    """Returns a function that reports itself as unimitated and raises."""

    def function(*_args: Any, **_kwargs: Any) -> Any:
        unimitated(call, why)
        raise RuntimeError(f"{call} cannot be imitated on a CPU: {why}")

    return function


def refuse_class(name: str, why: str) -> type:
    """Returns a class that can be named, in annotations or in ``isinstance``, but not made."""

    def new(_class: type, *_args: Any, **_kwargs: Any) -> Any:
        return refuse(name, why)()

    return type(name.rpartition(".")[2], (), {"__new__": new, "__doc__": f"What {name} is; it cannot be made here."})
