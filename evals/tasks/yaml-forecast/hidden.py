"""The file that is saved has the names of the plain model and loads on the CPU."""
import runpy
import sys

import torch

sys.argv = ["forecast", "--config", "configs/gpu.yaml", "--output", "kept.pt"]
runpy.run_module("forecast", run_name="__main__", alter_sys=False)
from forecast.model import Forecaster

model = Forecaster(24, 4, 24)
model.load_state_dict(torch.load("kept.pt", map_location="cpu"))
assert all(p.device.type == "cpu" and torch.isfinite(p).all() for p in model.parameters())
