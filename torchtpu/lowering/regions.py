"""Tells which operators of a recorded step torch.compile would put into one program.

While a step is recorded nothing is compiled, since tracing would hide the operators. Each call of what the program
hands to ``torch.compile`` is a region instead: its forward operators are one program, their backward operators another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Regions:
    """Calls of compiled modules and functions, numbered as they begin; an inner one belongs to the outer."""

    def __init__(self) -> None:
        self.depth = 0
        self.count = 0

    @property
    def current(self) -> int | None:
        """The number of the call that runs now; None outside of any."""
        return self.count if self.depth else None

    def enter(self, *_: Any) -> None:
        """Begins a call."""
        self.count += not self.depth
        self.depth += 1

    def leave(self, *_: Any) -> None:
        """Ends a call."""
        self.depth -= 1

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose calls are regions."""

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            self.enter()
            try:
                return function(*arguments, **named)
            finally:
                self.leave()

        return called

    def mark(self, thing: Any, module_type: type) -> Any:
        """Makes the calls of a module or function regions, and returns what stands for it."""
        if not isinstance(thing, module_type):
            return self.around(thing)
        if not getattr(thing, "_torchtpu_region", False):
            module: Any = thing
            module._torchtpu_region = True
            module.register_forward_pre_hook(self.enter)
            module.register_forward_hook(self.leave, always_call=True)
        return thing


REGIONS = Regions()


def follow(torch: Any) -> None:
    """Puts marks in the place of torch.compile and of the method `compile` of modules."""
    module = torch.nn.Module

    def compiled(model: Any = None, **_: Any) -> Any:
        if model is None:
            return lambda thing: REGIONS.mark(thing, module)
        return REGIONS.mark(model, module)

    torch.compile = functools.wraps(torch.compile)(compiled)
    module.compile = functools.wraps(module.compile)(lambda self, *_, **__: REGIONS.mark(self, module) and None)
