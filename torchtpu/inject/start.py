"""Begins the injected work of one Python process: who it is, what it reports, and its device."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from types import ModuleType

from torchtpu import kinds, trace
from torchtpu.inject import children, failures, imports, loaded, processes, steps, warned, writer
from torchtpu.lowering import capture
from torchtpu.proof import start as proof


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
    except device.DeviceFault as error:
        writer.write("fault", message=error.message, remedy=error.remedy)
    except device.DeviceError as error:
        writer.write("note", kind="device", message=error.message, remedy=error.remedy)


def _traced(what: str) -> None:
    if trace.FOLDER_VARIABLE in os.environ:
        from torchtpu.tracing import start

        getattr(start, what)()


def _after_torch(torch: ModuleType) -> None:
    _guard("oracle", lambda: proof.alias(torch))
    backend = sys.modules.get("torch_tpu")
    if backend and getattr(backend.__spec__, "_initializing", False):
        # A program that imports torch_tpu first imports torch in the middle of it; the device comes up at its end.
        imports.after_import("torch_tpu", lambda _: _with_torch(torch), begun=True)
    else:
        _with_torch(torch)


def _with_torch(torch: ModuleType) -> None:
    if processes.role() != processes.PROGRAM:
        return
    _guard("recorder", lambda: proof.record(torch))
    _guard("capture of steps", lambda: capture.hook_steps(torch))
    _guard("trace", lambda: _traced("hook"))
    _guard("step recorder", lambda: steps.install(torch))
    _guard("device", _bring_up)
    _guard("proof", lambda: proof.begin(torch))
    _guard("capture", lambda: capture.begin(torch))
    _guard("trace", lambda: _traced("begin"))


def _became_program() -> None:
    # Else the import of torch is still to come and will call for it.
    if "torch" in sys.modules:
        _after_torch(sys.modules["torch"])


def begin() -> None:
    """Installs everything; does nothing in a process that nobody watches."""
    if not writer.folder():
        return
    role = processes.install()
    processes.announce()
    if role == processes.HELPER:
        return
    _guard("failures", lambda: failures.install(role))
    _guard("warnings", warned.install)
    _guard("children", children.install)
    _guard("loaded", loaded.install)
    processes.when_program(_became_program)
    imports.after_import("torch", _after_torch)
    imports.watch("torch_tpu")
