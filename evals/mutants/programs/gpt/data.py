"""A made-up text of numbers, cut into windows."""

import torch
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Window i is `context` tokens, and the same shifted by one."""

    def __init__(self, context, length=203):
        numbers = torch.arange(length + context)
        self.codes = (numbers * numbers + 3 * numbers) % 33
        self.context = context
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        piece = self.codes[i : i + self.context + 1]
        return piece[:-1], piece[1:]


def loader(context, batch_size):
    """Batches in a shuffled order."""
    return DataLoader(Windows(context), batch_size=batch_size, shuffle=True, drop_last=True)
