"""Changes that may make a step faster or smaller on a TPU, one a file; `every` finds them in their order."""

from __future__ import annotations

import importlib
import pkgutil

from tools.transforms.base import Transform


def every() -> list[Transform]:
    """All transformations, those first that later ones build on."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base":
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            found += [one() for one in vars(loaded).values() if _is_transform(one, loaded.__name__)]
    return sorted(found, key=lambda transform: (transform.ORDER, transform.ID))


def _is_transform(one: object, module: str) -> bool:
    return isinstance(one, type) and issubclass(one, Transform) and one.__module__ == module
