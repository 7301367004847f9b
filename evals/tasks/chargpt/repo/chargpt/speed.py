"""How fast a step is, and how much of the GPU it uses."""

import torch

# NVIDIA A100, dense FP16 or BF16 tensor cores, FLOP/s.
A100_PEAK_FLOPS = 312e12


class StepTimer:
    """Times steps on the GPU, without waiting for each of them."""

    def __init__(self):
        self.before = torch.cuda.Event(enable_timing=True)
        self.after = torch.cuda.Event(enable_timing=True)

    def start(self):
        self.before.record()

    def stop(self):
        self.after.record()

    def seconds(self) -> float:
        torch.cuda.synchronize()
        return self.before.elapsed_time(self.after) / 1000


def flops_per_step(num_parameters: int, num_layers: int, width: int, context: int, num_characters: int) -> float:
    """Forward and backward: six per parameter and character, plus the attention products."""
    return num_characters * (6 * num_parameters + 12 * num_layers * width * context)


def utilisation(flops: float, seconds: float) -> float:
    return flops / seconds / A100_PEAK_FLOPS


def peak_memory_mib() -> float:
    return torch.cuda.max_memory_allocated() / 2**20
