"""The corpus as characters, cut into overlapping windows."""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Alphabet:
    """The characters of a text, each with a number."""

    def __init__(self, text: str):
        self.symbols = sorted(set(text))
        self.number = {symbol: i for i, symbol in enumerate(self.symbols)}

    def __len__(self):
        return len(self.symbols)

    def encode(self, text: str) -> torch.Tensor:
        return torch.tensor([self.number[symbol] for symbol in text], dtype=torch.long)

    def decode(self, numbers) -> str:
        return "".join(self.symbols[int(n)] for n in numbers)


class Windows(Dataset):
    """Window i is `context` characters, and the same shifted by one."""

    def __init__(self, codes: torch.Tensor, context: int):
        self.codes = codes
        self.context = context

    def __len__(self):
        return len(self.codes) - self.context

    def __getitem__(self, i):
        piece = self.codes[i : i + self.context + 1]
        return piece[:-1], piece[1:]


def read(path: str, context: int):
    """Return the alphabet, the training windows and the validation windows (the last tenth)."""
    text = Path(path).read_text(encoding="utf-8")
    alphabet = Alphabet(text)
    codes = alphabet.encode(text)
    border = len(codes) * 9 // 10
    return alphabet, Windows(codes[:border], context), Windows(codes[border:], context)


def loader(windows: Windows, batch_size: int, num_workers: int, rank: int, world_size: int, seed: int):
    sampler = DistributedSampler(windows, world_size, rank, shuffle=True, seed=seed, drop_last=True)
    return DataLoader(
        windows,
        batch_size=batch_size,
        sampler=sampler,
        num_workers=num_workers,
        pin_memory=True,
        drop_last=True,
        persistent_workers=num_workers > 0,
    )


def forever(batches):
    """Yield batches on the GPU, epoch after epoch."""
    epoch = 0
    while True:
        batches.sampler.set_epoch(epoch)
        for inputs, targets in batches:
            yield inputs.cuda(non_blocking=True), targets.cuda(non_blocking=True)
        epoch += 1
