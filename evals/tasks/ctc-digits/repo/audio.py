import numpy as np
import torch

RATE, DIGIT, NUM_DIGITS = 1600, 320, 5


def utterance(rng, n):
    """Waveform and digits of an utterance of n tones."""
    digits = rng.integers(0, NUM_DIGITS, n)
    t = np.arange(DIGIT) / RATE
    tones = [np.sin(2 * np.pi * (100 + 110 * d) * t) * np.hanning(DIGIT) for d in digits]
    wave = np.concatenate(tones).astype(np.float32)
    return wave + 0.05 * rng.standard_normal(wave.shape).astype(np.float32), digits


class FilterBank:
    """Framed waveform times a bank of cosines: cheap features on the GPU."""

    def __init__(self, size=80, hop=40, bands=16):
        self.size, self.hop = size, hop
        n = torch.arange(size, device="cuda", dtype=torch.float32)
        window = 0.5 - 0.5 * torch.cos(2 * np.pi * n / size)
        freqs = torch.linspace(50, 700, bands, device="cuda")
        phase = 2 * np.pi * n[:, None] * freqs[None] / RATE
        self.cos, self.sin = window[:, None] * phase.cos(), window[:, None] * phase.sin()

    def __call__(self, waves):
        frames = waves.unfold(1, self.size, self.hop)
        power = (frames @ self.cos) ** 2 + (frames @ self.sin) ** 2
        return torch.log(power + 1e-3)
