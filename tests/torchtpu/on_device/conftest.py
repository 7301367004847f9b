"""Brings the simulated device up for checks that run in a child process of the test suite."""

import warnings

import pytest
import torch

from torchtpu import device


def pytest_configure():
    warnings.filterwarnings("ignore")
    device.bring_up()
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
