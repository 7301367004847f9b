"""Cases that go wrong on purpose, which the supervisor is tested with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from evals.conformance.bench import Bench


def _adds(bench: Bench) -> Any:
    return bench.on([1.0, 2.0]) + 1


def _differs(bench: Bench) -> Any:
    return bench.on([1.0, 2.0 if bench.is_reference else 2.1])


def _dies(bench: Bench) -> Any:
    if not bench.is_reference:
        os.abort()
    return 0


def _hangs(bench: Bench) -> Any:
    if not bench.is_reference:
        time.sleep(3600)
    return 0


def _raises(bench: Bench) -> Any:
    return [] if bench.is_reference else bench.on([1.0]).no_such_method()


def load() -> dict[str, Callable[[Bench], Any]]:
    """Returns the cases in an order that puts work after every fault."""
    return {"dies": _dies, "differs": _differs, "hangs": _hangs, "raises": _raises, "adds": _adds}
