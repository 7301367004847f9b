import numpy as np
import torch
from torch.utils.data import Dataset


class ClickLog(Dataset):
    """Users like the items of their own taste; a history has two to six clicks."""

    def __init__(self, users, items, seed=0):
        rng = np.random.default_rng(seed)
        taste = rng.integers(0, 3, users)
        kind = np.arange(items) % 3
        self.rows = []
        for t in taste:
            likely = np.where(kind == t, 5.0, 1.0)
            history = rng.choice(items, size=rng.integers(2, 7), p=likely / likely.sum())
            item = int(rng.integers(items))
            liked = float(rng.random() < (0.9 if kind[item] == t else 0.1))
            self.rows.append((history, item, liked))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    lengths = [len(history) for history, _, _ in rows]
    offsets = torch.tensor([0] + lengths[:-1]).cumsum(0)
    ids = torch.from_numpy(np.concatenate([history for history, _, _ in rows]))
    item = torch.tensor([item for _, item, _ in rows])
    liked = torch.tensor([liked for _, _, liked in rows])
    return ids.cuda(), offsets.cuda(), item.cuda(), liked.cuda()
