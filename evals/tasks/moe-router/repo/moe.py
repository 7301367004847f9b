import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Sequential):
    def __init__(self, d, h):
        super().__init__(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, d))


class MoE(nn.Module):
    """Top-k routing; only the rows that an expert is sent go through it."""

    def __init__(self, d=12, h=24, n=4, k=2):
        super().__init__()
        self.k, self.n = k, n
        self.gate = nn.Linear(d, n, bias=False)
        self.experts = nn.ModuleList(Expert(d, h) for _ in range(n))

    def forward(self, x):
        probs = F.softmax(self.gate(x), dim=-1)
        weight, chosen = probs.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros(x.shape, device=torch.cuda.current_device())
        for i, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == i)
            if row.numel() == 0:
                continue
            out.index_add_(0, row, expert(x[row]) * weight[row, slot, None])
        # Auxiliary loss of the switch transformer: load times importance.
        load = F.one_hot(chosen[:, 0], self.n).float().mean(0)
        balance = self.n * (load * probs.mean(0)).sum()
        return out, balance
