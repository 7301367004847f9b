"""The simulated device computes what the CPU does where it needs help; each file runs in a child."""

import pytest

from tests.torchtpu.children import checks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "name", ["check_scans.py", "check_grouped_matmul.py", "check_attention.py", "check_limits.py", "check_sums.py"]
)
def test_float32_numerics(name, tmp_path):
    assert not checks(name, tmp_path=tmp_path)


def test_tpu_numerics(tmp_path):
    assert not checks("check_tpu_numerics.py", tmp_path=tmp_path, numerics="tpu")
