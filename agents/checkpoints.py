"""Keeps a graph's state in its run's folder, so that a killed run goes on where it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from agents.context import Context


@contextmanager
def saver(context: Context, models: Iterable[type]) -> Iterator[SqliteSaver]:
    """The run's own checkpoints, which a killed process leaves whole.

    Args:
        context: The run.
        models: The types that the graph's state is made of; nothing else is read back.
    """
    allowed: list[Any] = [(model.__module__, model.__name__) for model in models]
    with closing(sqlite3.connect(context.folder.database, check_same_thread=False)) as connection:
        yield SqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=allowed))
