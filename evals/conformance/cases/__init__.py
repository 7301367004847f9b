"""Conformance cases by topic; every public function that takes a bench is one case."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any

from evals.conformance.bench import Bench

Case = Callable[[Bench], Any]


def load() -> dict[str, Case]:
    """Returns every case by ``topic.name``, in a fixed order."""
    cases: dict[str, Case] = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                if not name.startswith("_"):
                    cases[f"{info.name}.{name}"] = function
    return cases
