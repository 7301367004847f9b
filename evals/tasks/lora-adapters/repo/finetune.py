from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

from decoder import Decoder
from lora import inject, merge


def counting(n: int, generator: torch.Generator, stride: int) -> torch.Tensor:
    """Rows that count up by `stride` modulo 24."""
    start = torch.randint(0, 24, (n, 1), generator=generator)
    return (start + stride * torch.arange(13)) % 24


def loss_of(model, ids):
    logits = model(ids[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def pretrain(model, steps=20):
    """Learns to count by one, on the CPU."""
    g = torch.Generator().manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(steps):
        with torch.enable_grad():
            loss = loss_of(model, counting(16, g, 1))
            grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for p, grad in zip(model.parameters(), grads):
                p -= 0.3 * grad
    del optimizer
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-2)
    args = parser.parse_args()

    torch.manual_seed(0)
    major, _ = torch.cuda.get_device_capability()
    dtype = torch.bfloat16 if major >= 8 and torch.cuda.is_bf16_supported() else torch.float16
    model = pretrain(Decoder())
    trained = inject(model, args.rank, ("query", "value"))
    optimizer = torch.optim.AdamW(trained, lr=args.lr)
    model.cuda()
    print(f"{sum(p.numel() for p in trained)} trained parameters, "
          f"{torch.cuda.memory_allocated() / 2**20:.1f} MiB on the GPU")

    g = torch.Generator().manual_seed(2)
    for step in range(args.steps):
        ids = counting(16, g, 5).cuda()
        with torch.autocast(device_type="cuda", dtype=dtype):
            loss = loss_of(model, ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")

    adapters = {n: p for n, p in model.named_parameters() if p.requires_grad}
    torch.save(adapters, "adapters.pt")
    merge(model).eval()
    with torch.no_grad():
        print(f"merged loss {loss_of(model, counting(16, g, 5).cuda()).item():.4f}")
    torch.save(model.state_dict(), "merged.pt")


if __name__ == "__main__":
    main()
