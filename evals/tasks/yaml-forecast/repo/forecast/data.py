import numpy as np
import torch


class Windows(torch.utils.data.Dataset):
    """Seasonal series with trend, cut into context and horizon."""

    def __init__(self, series, length, context, horizon, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(length)
        period = rng.choice([6, 8, 12], size=(series, 1))
        level = rng.normal(0, 0.5, size=(series, 1)) + 0.01 * t
        self.values = (level + np.sin(2 * np.pi * t / period)).astype(np.float32)
        self.context, self.horizon = context, horizon
        self.per_series = length - context - horizon + 1

    def __len__(self):
        return len(self.values) * self.per_series

    def __getitem__(self, i):
        row, start = divmod(i, self.per_series)
        window = torch.from_numpy(self.values[row, start:start + self.context + self.horizon])
        return window[: self.context], window[self.context:]
