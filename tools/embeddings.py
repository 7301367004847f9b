"""Compares texts by meaning with the small model that the package `wordllama` ships: no download, no accelerator."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any


def available() -> bool:
    """Whether the optional package is installed with its weights and its tokenizer."""
    return _model() is not None


def similarities(query: str, texts: tuple[str, ...]) -> list[float] | None:
    """How near each text is to the query, from -1 to 1; None where the package is not installed.

    Args:
        query: Words, or a message.
        texts: What to compare with; their vectors are kept.
    """
    model = _model()
    if model is None:
        return None
    nearness = _vectors(texts) @ model.embed(query, norm=True)[0]
    return [float(value) for value in nearness]


@cache
def _vectors(texts: Sequence[str]) -> Any:
    model = _model()
    assert model is not None
    return model.embed(list(texts), norm=True)


@cache
def _model() -> Any | None:
    try:
        package = importlib.import_module("wordllama")
    except ImportError:
        return None
    # The package looks for its tokenizer beside the cache, not where it ships it: its own folder stands for the cache.
    folder = Path(str(package.__file__)).parent
    try:
        return package.WordLlama.load(cache_dir=folder, disable_download=True)
    except FileNotFoundError:
        return None
