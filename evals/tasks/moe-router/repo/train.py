import sys

import torch
import torch.nn as nn

from moe import MoE

# hydra-like overrides without hydra
cfg = dict(steps=500, lr=0.01, tokens=64, gpu=0, seed=0)
for arg in sys.argv[1:]:
    key, _, value = arg.lstrip("+").partition("=")
    cfg[key] = type(cfg[key])(value)

torch.manual_seed(cfg["seed"])
gpu = cfg["gpu"]
model = nn.ModuleDict({"inp": nn.Linear(3, 12), "moe": MoE(), "out": nn.Linear(12, 1)})
data_rng = torch.Generator().manual_seed(99)


def batch():
    x = torch.rand(cfg["tokens"], 3, generator=data_rng) * 2 - 1
    y = torch.where(x[:, :1] > 0, torch.sin(3 * x[:, 1:2]), x[:, 2:] ** 2)
    return x.to(gpu), y.to(gpu)


with torch.cuda.device(gpu):
    model.to(gpu)
    opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    for step in range(cfg["steps"]):
        x, y = batch()
        h, balance = model["moe"](torch.tanh(model["inp"](x)))
        fit = nn.functional.mse_loss(model["out"](h), y)
        loss = fit + 0.01 * balance
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step={step} loss={loss.item():.5f} fit_loss {fit.item():.5f} balance loss {balance.item():.5f}")
