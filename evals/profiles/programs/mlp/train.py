"""Trains two layers on synthetic data: small enough to compile in seconds."""

import torch
from torch import nn


def main():
    device = torch.accelerator.current_accelerator() or torch.device("cpu")
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(64, 256).to(device)
        y = torch.randint(0, 128, (64,)).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
