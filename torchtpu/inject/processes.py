"""Tells the processes of a workload apart: programs, launchers of others, data loading workers, helpers."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from torchtpu.inject import failures, imports, writer

PROGRAM = "program"
LAUNCHER = "launcher"
LOADER = "loader"
HELPER = "helper"
FORKSERVER = "forkserver"

_LAUNCHER_SCRIPTS = {"torchrun", "accelerate", "accelerate-launch", "deepspeed"}
_LAUNCHER_MODULES = {
    "torch.distributed.run",
    "torch.distributed.launch",
    "deepspeed.launcher.launch",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
}
_COMPILE_WORKER = os.path.join("torch", "_inductor", "compile_worker", "__main__.py")
_ROLE_KEY = "torchtpu_role"
_starting = threading.local()
_role = PROGRAM
_on_program: list[Callable[[], None]] = []


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
        return _from_code(arguments[1] if arguments[1:] else "")
    if arguments[0].endswith(_COMPILE_WORKER):
        return HELPER
    return LAUNCHER if os.path.basename(arguments[0]) in _LAUNCHER_SCRIPTS else PROGRAM


def _from_code(code: str) -> str:
    if code.startswith("from multiprocessing.resource_tracker import main"):
        return HELPER
    return FORKSERVER if code.startswith("from multiprocessing.forkserver import main") else PROGRAM


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
        except BaseException as error:  # SystemExit and KeyboardInterrupt end a child too; it is raised again
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
        except BaseException as error:  # SystemExit and KeyboardInterrupt end a child too; it is raised again
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
        forked, _role = _role == FORKSERVER, data.get(_ROLE_KEY, PROGRAM)
        if forked:
            announce()
            if _role == PROGRAM:
                # The server may have imported torch already, without a device of its own.
                for action in _on_program:
                    action()
        prepare(data)

    module.get_preparation_data, module.prepare = get_preparation_data, prepare_with_role


def install() -> str:
    """Finds this process's role, makes its children know theirs, and returns it."""
    global _role
    _role = _from_command_line(sys.orig_argv)
    os.register_at_fork(after_in_child=writer.forget_unsent)
    imports.after_import("multiprocessing.process", _hook_process)
    imports.after_import("multiprocessing.spawn", _hook_spawn)
    return _role


def when_program(action: Callable[[], None]) -> None:
    """Calls ``action`` in a child of a fork server that turns out to be a program."""
    _on_program.append(action)


def announce() -> None:
    """Writes the start event of this process."""
    argv = [writer.shorten(word, 1000) for word in sys.orig_argv[:20]]
    writer.write("start", role=_role, ppid=os.getppid(), python=sys.executable, argv=argv)
