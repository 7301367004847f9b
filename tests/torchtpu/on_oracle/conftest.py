"""Makes `cuda` an alias of the CPU for checks that run in a child process of the test suite."""

import json
import os
import warnings

import pytest
import torch

from torchtpu.inject import writer
from torchtpu.proof import oracle


def pytest_configure():
    warnings.filterwarnings("ignore")
    oracle.install(torch)
    torch.set_num_threads(1)


@pytest.fixture
def reports(tmp_path, monkeypatch):
    """A function that returns the events written so far."""
    monkeypatch.setattr(writer, "_folder", str(tmp_path))

    def read():
        path = tmp_path / f"{os.getpid()}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []

    return read
