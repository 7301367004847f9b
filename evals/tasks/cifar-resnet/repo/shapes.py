"""A toy data set: four kinds of shapes, one per class."""
import numpy as np
import torch
from torch.utils.data import TensorDataset

SIZE = 16


def draw(kind, rng):
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cy, cx = rng.uniform(5, 11, size=2)
    r = np.hypot(y - cy, x - cx)
    if kind == 0:
        mask = r < 4
    elif kind == 1:
        mask = np.abs(y - cy) < 1.5
    elif kind == 2:
        mask = (r > 3) & (r < 5)
    else:
        mask = (np.abs(y - cy) < 1.2) | (np.abs(x - cx) < 1.2)
    colour = rng.uniform(0.3, 1.0, size=3)
    image = mask[None] * colour[:, None, None]
    return (image + 0.2 * rng.standard_normal(image.shape)).astype(np.float32)


def dataset(n, seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 4
    rng.shuffle(labels)
    images = np.stack([draw(k, rng) for k in labels])
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels).long())
