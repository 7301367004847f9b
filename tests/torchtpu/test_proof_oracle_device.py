"""Replayed draws and TPU numerics of the CPU agree with the simulated device; each file runs in a child."""

import pytest

from tests.torchtpu.children import checks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]


def test_draws(tmp_path):
    assert not checks("check_draws.py", tmp_path=tmp_path, limit=900)


def test_tpu_numerics_on_the_cpu(tmp_path):
    assert not checks("check_cpu_numerics.py", tmp_path=tmp_path, limit=900, numerics="tpu")
