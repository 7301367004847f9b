"""Keeps the injected code in the programs a workload starts, whatever environment it gives them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

from torchtpu.inject import imports, writer

# What the launcher sets for the workload and for everything below it.
_OURS = ("TORCHTPU_", "TPU_LIBRARY_PATH", "TPU_SKIP_MDS_QUERY", "TORCH_DEVICE_BACKEND_AUTOLOAD")
_PATH = "PYTHONPATH"
_kept = {name: value for name, value in os.environ.items() if name.startswith(_OURS)}


def _own_folder() -> str | None:
    file = getattr(sys.modules.get("torchtpu"), "__file__", None)
    return os.path.dirname(os.path.dirname(file)) if file else None


def keep(environ: MutableMapping[str, str]) -> None:
    """Puts back what a program left out of an environment; what it has set itself stays."""
    if not writer.folder():
        return
    for name, value in _kept.items():
        if name not in environ:
            environ[name] = value
    here, path = _own_folder(), environ.get(_PATH, "")
    if here and here not in path.split(os.pathsep):
        environ[_PATH] = f"{here}{os.pathsep}{path}" if path else here


def _kept_copy(environ: Any) -> dict[str, str]:
    text = {os.fsdecode(name): os.fsdecode(value) for name, value in environ.items()}
    keep(text)
    return text


def _hook_subprocess(module: Any) -> None:
    start = module.Popen.__init__

    @functools.wraps(start)
    def keeping(self: Any, *arguments: Any, **named: Any) -> None:
        if named.get("env") is None:
            keep(os.environ)
        else:
            named["env"] = _kept_copy(named["env"])
        start(self, *arguments, **named)

    module.Popen.__init__ = keeping


def _before(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def keeping(*arguments: Any, **named: Any) -> Any:
        keep(os.environ)
        return function(*arguments, **named)

    return keeping


def _hook_multiprocessing(module: Any) -> None:
    module.spawnv_passfds = _before(module.spawnv_passfds)


def _hook_exec(module: Any) -> None:
    # The other six of the family call these two.
    execve = module.execve

    @functools.wraps(execve)
    def keeping(path: Any, argv: Any, env: Any) -> Any:
        return execve(path, argv, _kept_copy(env))

    module.execv, module.execve = _before(module.execv), keeping


def install() -> None:
    """Starts watching over the environments of this process's children."""
    imports.after_import("subprocess", _hook_subprocess)
    imports.after_import("multiprocessing.util", _hook_multiprocessing)
    os.system = _before(os.system)
    _hook_exec(os)
