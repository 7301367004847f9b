from __future__ import print_function

import argparse
import math

import torch
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset

from vit import ViT


class Stripes(Dataset):
    """Stripes in one of four directions."""

    def __init__(self, length, seed):
        self.length, self.seed = length, seed

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        label = i % 4
        phase = torch.rand((), generator=g).item() * math.pi
        angle = label * math.pi / 4
        y, x = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
        image = torch.sin(0.8 * (x * math.cos(angle) + y * math.sin(angle)) + phase)
        return (image + 0.3 * torch.randn(24, 24, generator=g))[None], label


def train(args, model, device, loader, optimizer, scheduler):
    model.train()
    step = 0
    while step < args.steps:
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
            scheduler.step()
            if step % args.log_interval == 0:
                print("Train step: {} [{}]\tLoss: {:.6f}".format(step, len(data), loss.item()))
            step += 1
            if step == args.steps:
                break


def test(model, device, loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            test_loss += F.cross_entropy(model(data), target, reduction="sum").item()
    print("\nTest set: Average loss: {:.4f}\n".format(test_loss / len(loader.dataset)))


def main():
    parser = argparse.ArgumentParser(description="Tiny ViT")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--no-cuda", action="store_true", default=False, help="disables CUDA training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=1)
    parser.add_argument("--save-model", action="store_true", default=False)
    args = parser.parse_args()
    args.cuda = not args.no_cuda and torch.cuda.is_available()

    torch.manual_seed(args.seed)
    if args.cuda:
        torch.cuda.manual_seed(args.seed)
    device = torch.device("cuda" if args.cuda else "cpu")
    kwargs = {"num_workers": 1, "pin_memory": True} if args.cuda else {}

    train_loader = DataLoader(Stripes(256, 1), batch_size=args.batch_size, shuffle=True, **kwargs)
    test_loader = DataLoader(Stripes(64, 2), batch_size=args.batch_size, **kwargs)

    model = ViT().to(device)
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    train(args, model, device, train_loader, optimizer, scheduler)
    test(model, device, test_loader)
    if args.save_model:
        torch.save(model.state_dict(), "vit.pt")


if __name__ == "__main__":
    main()
