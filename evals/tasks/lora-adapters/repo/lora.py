"""Low-rank adapters for linear layers."""
from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float = 8.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + (x @ self.down.T @ self.up.T) * self.scale

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        self.base.weight += self.scale * self.up @ self.down
        return self.base


def inject(model: nn.Module, rank: int, names: tuple[str, ...]) -> list[nn.Parameter]:
    """Replace the named linear layers; everything else is frozen. Returns what is trained."""
    model.requires_grad_(False)
    trained = []
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in names and isinstance(child, nn.Linear):
                layer = LoRALinear(child, rank)
                setattr(parent, name, layer)
                trained += [layer.down, layer.up]
    return trained


def merge(model: nn.Module) -> nn.Module:
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LoRALinear):
                setattr(parent, name, child.merged())
    return model
