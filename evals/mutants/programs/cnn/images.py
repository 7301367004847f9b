"""Made-up images: a class is a frequency, with noise and a random flip."""

import random

import numpy as np
import torch


def make(count, seed):
    """Images and their classes."""
    generator = np.random.default_rng(seed)
    classes = generator.integers(0, 5, count)
    places = np.arange(12) / 12
    waves = np.sin(2 * np.pi * (classes[:, None] + 1) * places[None])
    images = waves[:, None, None, :] + 0.3 * generator.standard_normal((count, 3, 12, 12))
    return torch.tensor(images, dtype=torch.float32), torch.tensor(classes)


def batches(images, classes, size):
    """Batches in a shuffled order, some of the images flipped."""
    order = torch.randperm(len(images))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        picked = images[chosen]
        if random.random() < 0.5:
            picked = picked.flip(3)
        yield (picked - picked.mean()) / picked.std(), classes[chosen]
