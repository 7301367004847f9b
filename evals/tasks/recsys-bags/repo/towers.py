import torch
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        self.history = nn.EmbeddingBag(items, dim, mode="mean", sparse=True)
        self.item = nn.EmbeddingBag(items, dim, mode="sum", sparse=True)
        self.user_tower = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))
        self.item_tower = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, ids, offsets, item):
        user = self.user_tower(self.history(ids, offsets))
        other = self.item_tower(self.item(item.unsqueeze(1)))
        return torch.sum(user * other, dim=1)
