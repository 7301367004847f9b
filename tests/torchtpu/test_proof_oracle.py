"""A program written for CUDA runs unmodified on a CPU; each file of checks runs in a child with the alias in force."""

import pytest

from tests.torchtpu.children import checks

FILES = ["check_placement.py", "check_cuda_module.py", "check_amp.py", "check_standins.py"]


@pytest.mark.parametrize("name", FILES)
def test_the_alias(name, tmp_path):
    pytest.importorskip("torch")
    assert not checks(name, tmp_path=tmp_path, limit=280, folder="on_oracle", PYTORCH_JIT="0")
