"""The weights that the program kept load on a machine with no accelerator, running statistics among them."""
import runpy
import sys

import torch

sys.argv = ["main.py", "--epochs", "1", "--batch-size", "64"]
runpy.run_path("main.py", run_name="__main__")
state = torch.load("checkpoint/best.pth", map_location="cpu")["net"]
assert all(value.device.type == "cpu" for value in state.values()), "weights are not on the CPU"
assert state["bn.running_mean"].abs().sum() > 0, "the running mean never changed"
assert torch.isfinite(state["linear.weight"]).all(), "a weight is not finite"
