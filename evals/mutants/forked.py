"""Makes runs on the CPU in forks of a process that has imported torch: what hundreds of small runs wait for most.

Nothing is supervised or kept apart, which is right for programs of our own only. A run on a device is made as ever.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools import run as runner
from torchtpu.proof.spec import Proof

_SECONDS = 120.0


def run(request: runner.RunRequest, on_event: Callable[[Any], None] | None = None) -> runner.RunOutput:
    """Makes one run of a Python script."""
    if request.proof is None or request.device != "cpu":
        return runner.run(request, on_event=on_event)
    # Imported once, for all forks; without the backend, whose threads would not live through a fork.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch

    # The first optimizer imports it in any run, which takes longer than the run itself.
    importlib.import_module("torch._dynamo")
    importlib.import_module("torch.utils.data")
    torch.set_num_threads(1)

    began = time.monotonic()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(request, request.proof, sender))
    child.start()
    sender.close()
    child.join(_SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
    told = _received(receiver)
    good = child.exitcode == 0 and told is None
    return runner.RunOutput(
        outcome="completed" if good else "exception",
        explanation="" if good else f"{(told or {}).get('text', f'exit code {child.exitcode}')}",
        exit_code=child.exitcode,
        duration=time.monotonic() - began,
        exception=None if good else told,
        log=str(request.log) if request.log else None,
    )


def _received(receiver: Any) -> dict[str, Any] | None:
    try:
        return dict(receiver.recv()) if receiver.poll() else None
    except EOFError:
        return None


def _child(request: runner.RunRequest, proof: Proof, sender: Any) -> None:
    os.environ.update({**request.command.env, **proof.variables(), "TORCHTPU_ROOT": str(request.cwd)})
    if request.steps:
        os.environ["TORCHTPU_MAX_STEPS"] = str(request.steps)
    os.chdir(request.cwd)
    with open(request.log or os.devnull, "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.path.insert(0, str(request.cwd))
    sys.argv = request.command.argv[1:]
    _compute(sys.argv, sender)


def _compute(words: list[str], sender: Any) -> None:
    import torch

    from torchtpu.inject import steps
    from torchtpu.proof import recorder, start

    start.alias(torch)
    start.record(torch)
    steps.install(torch)
    start.begin(torch)
    try:
        if words[0] == "-c":
            exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit:
        pass
    except Exception as error:  # noqa: BLE001  any fault of the program is its outcome
        frames = traceback.extract_tb(error.__traceback__)
        last, here = frames[-1], Path.cwd()
        users = [frame for frame in frames if Path(frame.filename).resolve().is_relative_to(here)]
        told = [{"file": Path(f.filename).name, "line": f.lineno} for f in users] or [{"file": last.filename}]
        sender.send({"type": type(error).__name__, "text": f"{type(error).__name__}: {error}", "frames": told})
    if recorder.made is not None:
        recorder.made.finish()
    # The exit of a fork would run what the parent registered.
    os._exit(0)
