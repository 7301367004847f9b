import pytest
import torch

from forecast import Experiment, Settings
from forecast.data import Windows
from forecast.model import Forecaster


@pytest.fixture
def settings():
    found = Settings.read("configs/cpu.yaml")
    found.training["steps"] = 5
    return found


def test_a_constant_series_is_continued():
    model = Forecaster(8, 2, 4)
    flat = torch.full((1, 8), 3.0)
    zero = model(torch.zeros(1, 8))
    assert torch.allclose(model(flat), 3.0 + zero, atol=1e-5)


def test_windows_do_not_cross_series():
    windows = Windows(2, 20, 6, 2)
    assert len(windows) == 2 * 13
    assert windows[12][1].shape == (2,)


def test_training_on_the_cpu(settings, tmp_path):
    experiment = Experiment(settings)
    losses = experiment.run(tell=lambda line: None)
    assert len(losses) == 5
    experiment.save(tmp_path / "f.pt")
    assert set(torch.load(tmp_path / "f.pt")) == set(experiment.model.state_dict())
