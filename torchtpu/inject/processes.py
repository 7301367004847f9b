"""Tells the processes of a workload apart: programs, launchers of others, data loading workers, helpers."""

from __future__ import annotations

import functools
import os
import sys
import threading
from types import ModuleType
from typing import Any

from torchtpu.inject import failures, imports, writer

PROGRAM = "program"
LAUNCHER = "launcher"
LOADER = "loader"
HELPER = "helper"

_LAUNCHER_SCRIPTS = {"torchrun", "accelerate", "accelerate-launch", "deepspeed"}
_LAUNCHER_MODULES = {
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
}
_ROLE_KEY = "torchtpu_role"
_starting = threading.local()
_role = PROGRAM


def role() -> str:
    """Returns this process's role; only a program brings the device up."""
    return _role


def _from_command_line(argv: list[str]) -> str:
    arguments = argv[1:]
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c"):
        arguments = arguments[2:] if arguments[0] in ("-X", "-W") else arguments[1:]
    if not arguments:
        return PROGRAM
    if arguments[0] == "-m":
        return LAUNCHER if arguments[1:2] and arguments[1] in _LAUNCHER_MODULES else PROGRAM
    if arguments[0] == "-c":
        helper = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
        return HELPER if arguments[1:2] and any(name in arguments[1] for name in helper) else PROGRAM
    return LAUNCHER if os.path.basename(arguments[0]) in _LAUNCHER_SCRIPTS else PROGRAM


def _is_loader(process: Any) -> bool:
    target = getattr(process, "_target", None)
    return getattr(target, "__module__", "") == "torch.utils.data._utils.worker"


def _report_inside(process: Any) -> None:
    # torch.multiprocessing.spawn catches what its function raises and sends the parent a text of it.
    if getattr(process._target, "__module__", "") != "torch.multiprocessing.spawn":
        return
    function, *rest = process._args

    @functools.wraps(function)
    def reporting(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            failures.report(error, role=_role)
            raise

    process._args = (reporting, *rest)


def _hook_process(module: ModuleType) -> None:
    process: Any = module.BaseProcess
    start, run = process.start, process.run

    def reporting_start(self: Any) -> None:
        _starting.role = LOADER if _is_loader(self) else PROGRAM
        try:
            start(self)
        finally:
            _starting.role = None

    def reporting_run(self: Any) -> None:
        global _role
        if _is_loader(self):
            _role = LOADER
        try:
            _report_inside(self)
            run(self)
        except BaseException as error:
            failures.report(error, role=_role)
            raise

    process.start, process.run = reporting_start, reporting_run


def _hook_spawn(module: Any) -> None:
    # A spawned child imports the main module, and torch with it, before it knows its target: its role
    # travels with the preparation data.
    preparation, prepare = module.get_preparation_data, module.prepare

    def get_preparation_data(name: str) -> Any:
        return {**preparation(name), _ROLE_KEY: getattr(_starting, "role", None) or PROGRAM}

    def prepare_with_role(data: Any) -> None:
        global _role
        _role = data.get(_ROLE_KEY, PROGRAM)
        prepare(data)

    module.get_preparation_data, module.prepare = get_preparation_data, prepare_with_role


def install() -> str:
    """Finds this process's role, makes its children know theirs, and returns it."""
    global _role
    _role = _from_command_line(sys.orig_argv)
    imports.after_import("multiprocessing.process", _hook_process)
    imports.after_import("multiprocessing.spawn", _hook_spawn)
    return _role


def announce() -> None:
    """Writes the start event of this process."""
    writer.write("start", role=_role, ppid=os.getppid(), python=sys.executable, argv=sys.orig_argv[:20])
