"""Seeds every source of random numbers, and makes those that seed themselves anew repeat."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from torchtpu.inject import imports
from torchtpu.proof import wrapping

_NUMPY_LIMIT = 2**32


def _numpy(seed: int) -> Callable[[Any], None]:
    def after(numpy: Any) -> None:
        numpy.random.seed(seed % _NUMPY_LIMIT)
        made = 0

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def default_rng(given: Any = None) -> Any:
                nonlocal made
                if given is None:
                    given, made = [seed % _NUMPY_LIMIT, made], made + 1
                return original(given)

            return default_rng

        wrapping.over(numpy.random, "default_rng", make)

    return after


def seed(torch: Any, value: int) -> None:
    """Seeds torch, numpy (when it is imported) and random; a program's own seeds come later and win.

    ``torch.seed()`` and NumPy generators without a seed take theirs from this one instead of the system.
    """
    torch.manual_seed(value)
    random.seed(value)
    imports.after_import("numpy", _numpy(value))
    asked = 0

    def again() -> int:
        nonlocal asked
        asked += 1
        torch.manual_seed(value + asked)
        return value + asked

    torch.seed = torch.random.seed = again
