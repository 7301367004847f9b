import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import torch_xla.core.xla_model as xm
    import torch_xla.distributed.parallel_loader as pl
    HAS_XLA = True
except ImportError:
    xm = pl = None
    HAS_XLA = False

os.environ.setdefault("XLA_USE_BF16", "0")


class AutoEncoder(nn.Module):
    def __init__(self, side=12, hidden=48, code=8):
        super().__init__()
        n = side * side
        self.encoder = nn.Sequential(nn.Linear(n, hidden), nn.LeakyReLU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.LeakyReLU(), nn.Linear(hidden, n))

    def forward(self, x):
        return self.decoder(self.encoder(x.flatten(1))).view_as(x)


def rectangles(n=256, side=12):
    g = torch.Generator().manual_seed(77)
    out = torch.zeros(n, side, side)
    for image in out:
        y, x = torch.randint(0, side - 4, (2,), generator=g).tolist()
        h, w = torch.randint(2, 5, (2,), generator=g).tolist()
        image[y:y + h, x:x + w] = 1.0
    return out


def get_device(kind):
    if kind == "xla":
        if not HAS_XLA:
            raise SystemExit("torch_xla is not installed")
        return xm.xla_device()
    return torch.device("cuda") if kind == "gpu" else torch.device("cpu")


def step_optimizer(kind, optimizer):
    if kind == "xla":
        xm.optimizer_step(optimizer, barrier=True)
    else:
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accelerator", choices=["gpu", "xla", "none"], default="gpu")
    parser.add_argument("--steps", type=int, default=2000)
    flags = parser.parse_args()
    kind = flags.accelerator

    torch.manual_seed(1)
    device = get_device(kind)
    model = AutoEncoder()
    if kind == "gpu":
        model = model.cuda()
    else:
        model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(rectangles()), batch_size=32, shuffle=True, pin_memory=kind == "gpu")
    if kind == "xla":
        loader = pl.MpDeviceLoader(loader, device)

    done = 0
    running = torch.zeros((), device=device)
    while done < flags.steps:
        for (images,) in loader:
            if kind == "gpu":
                images = images.cuda(non_blocking=True)
            loss = ((model(images) - images) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            step_optimizer(kind, optimizer)
            running += loss.detach()
            printer = xm.master_print if kind == "xla" else print
            printer(f"step {done} loss {loss.item():.5f}")
            done += 1
            if done == flags.steps:
                break
    if kind == "xla":
        xm.mark_step()
    print(f"mean loss {running.item() / done:.5f}")
    if kind == "xla":
        xm.save(model.state_dict(), "ae.pt")
    else:
        torch.save(model.state_dict(), "ae.pt")


if __name__ == "__main__":
    main()
