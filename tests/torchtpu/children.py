"""Runs code that needs the device in a child process with a time limit."""

import os
import subprocess
import sys
from pathlib import Path

from torchtpu import device

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def environment(numerics="float32", **extra):
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    variables |= device.environment(device.choose("simulated"), numerics)
    return variables | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)} | extra


def python(*arguments, cwd, limit=240, **options):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(**options),
        capture_output=True,
        text=True,
        timeout=limit,
    )


def checks(name, *, tmp_path, limit=400, folder="on_device", **options):
    """Runs the checks of one file in a folder and returns pytest's words when they fail."""
    done = python(
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:logging",
        "-p",
        "no:xdist",
        "-o",
        "addopts=",
        "-o",
        f"python_files={name}",
        "--rootdir",
        ROOT,
        HERE / folder / name,
        cwd=tmp_path,
        limit=limit,
        **options,
    )
    return "" if done.returncode == 0 else f"code {done.returncode}\n{done.stdout}\n{done.stderr}"[-6000:]
