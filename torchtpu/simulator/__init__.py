"""The simulated device: the real torch_tpu backend on XLA's CPU PJRT plugin instead of a TPU."""
