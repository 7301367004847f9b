"""What a person in a chat, a language model or another program may do on a private tree: one file a tool."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from agents.toolkit.base import Tool

_OWN = ("base", "bench")


@cache
def tools() -> dict[str, Tool]:
    """Every tool by name; a file in this folder that defines TOOL is one."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name not in _OWN:
            tool: Tool = importlib.import_module(f"{__name__}.{module.name}").TOOL
            found[tool.name] = tool
    return dict(sorted(found.items()))
