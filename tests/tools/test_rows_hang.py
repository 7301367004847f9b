"""A save that waits for all ranks hangs under a condition they disagree on; what the rules make of it does not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.rows import migrated
from tests.tools.test_rows_devices import SHOWN

PATIENCE = 40.0

# torch_xla's save as far as it matters here: the first rank writes, and all ranks meet.
TORCH_XLA = """
import torch
import torch.distributed as dist


def save(data, path):
    if dist.get_rank() == 0:
        torch.save(data, path)
    dist.barrier()
"""


def ranks(text: str, folder: Path) -> list[str]:
    """How a program ends on each of two ranks: its last line, or ``waits``."""
    core = folder / "torch_xla/core"
    core.mkdir(parents=True)
    for package in (folder / "torch_xla", core):
        (package / "__init__.py").write_text("")
    (core / "xla_model.py").write_text(TORCH_XLA)
    (folder / "train.py").write_text(text)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    shared |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONPATH": str(folder)}
    children = [
        subprocess.Popen(
            [sys.executable, "train.py"],
            cwd=folder,
            env={**shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(2)
    ]
    ended = []
    for child in children:
        try:
            output, _ = child.communicate(timeout=PATIENCE)
            ended.append(output.strip().splitlines()[-1] if output.strip() else f"code {child.returncode}")
        except subprocess.TimeoutExpired:
            ended.append("waits")
    for child in children:
        child.kill()
        child.wait()
    return ended


@pytest.mark.slow
def test_the_broken_program_waits_and_the_fixed_one_ends(tmp_path: Path) -> None:
    case = next(case for case in SHOWN if case.row == "D8")
    # The rank left behind waits for the other, or is told that it has gone.
    assert ranks(case.broken, tmp_path / "broken").count("done") == 1
    assert ranks(migrated(case.broken), tmp_path / "fixed") == ["done", "done"]
