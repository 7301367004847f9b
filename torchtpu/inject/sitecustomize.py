"""Found by Python's start-up on PYTHONPATH: starts the injected code, then the sitecustomize it shadows."""

import importlib.machinery
import importlib.util
import os
import sys


def _start() -> None:
    try:
        from torchtpu.inject import start

        start.begin()
    except Exception as error:  # noqa: BLE001  the workload must run whatever is wrong with us
        sys.stderr.write(f"torchtpu: the start-up code failed: {error!r}\n")


def _chain() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_start()
_chain()
