"""Measures how much of PyTorch the device runs, and whether its results are those of the CPU."""
