"""Reports at a process's end which of the project's files were imported, which no one can know before."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator

from torchtpu.inject import frames, writer

MAX_FILES = 1500
# Read once: a program may change its folder or clear its environment.
_root = _script = ""


def _files() -> Iterator[str]:
    known = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    # Python takes the main module's own name away before it ends.
    for file in (_script, *known):
        if isinstance(file, str) and file.startswith(_root) and file.endswith(".py") and frames.is_users(file):
            yield os.path.relpath(file, _root)


def _report() -> None:
    files = sorted(set(_files()))[:MAX_FILES]
    if files:
        writer.write("loaded", files=files)


def install() -> None:
    """Makes this process report; one that is killed does not, and then nothing is known of it."""
    global _root, _script
    _script = os.path.abspath(sys.argv[0]) if sys.argv else ""
    _root = os.path.realpath(os.environ.get(frames.ROOT_VARIABLE) or os.getcwd()) + os.sep
    atexit.register(_report)
