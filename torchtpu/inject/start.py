"""Begins the injected work of one Python process: who it is, what it reports, and its device."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from types import ModuleType

from torchtpu import kinds
from torchtpu.inject import failures, imports, processes, steps, warned, writer


def _guard(name: str, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001  whatever fails here, the program runs and the parent is told
        writer.write("note", kind="injection", message=f"{name}: {type(error).__name__}: {error}")


def _bring_up() -> None:
    from dataclasses import asdict

    from torchtpu import device

    if "XLA_FLAGS" not in os.environ:
        warnings.filterwarnings("ignore", message=kinds.OWN_DOING)
    try:
        with warnings.catch_warnings():
            # What our own bring-up is warned of is none of the program's doing.
            warnings.simplefilter("ignore")
            writer.write("device", **asdict(device.bring_up()))
    except device.DeviceError as error:
        writer.write("note", kind="device", message=error.message, remedy=error.remedy)


def _after_torch(torch: ModuleType) -> None:
    if processes.role() != processes.PROGRAM:
        return
    _guard("step recorder", lambda: steps.install(torch))
    _guard("device", _bring_up)


def begin() -> None:
    """Installs everything; does nothing in a process that nobody watches."""
    if not os.environ.get(writer.FOLDER_VARIABLE):
        return
    role = processes.install()
    processes.announce()
    if role == processes.HELPER:
        return
    _guard("failures", lambda: failures.install(role))
    _guard("warnings", warned.install)
    imports.after_import("torch", _after_torch)
